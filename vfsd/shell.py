"""Words of a suggested command, so that what an error says can be pasted into a shell."""

import os
import shlex


def quoted(word: str) -> str:
    r"""Return *word* as a shell reads it back: every path in a suggested command goes through here.

    What is not printable, or not text, is written in octal within ``$'…'``, as bash, ksh and zsh read it. (After ``\x``
    some shells take more than two digits.) So nothing is left that :func:`vfsd.printable.printable` would change.
    """
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    return letter if letter.isprintable() else "".join(f"\\{byte:03o}" for byte in os.fsencode(letter))
