<<<<<<< HEAD
"""Text that is safe to print: the one function through which everything goes that people see on a terminal or in a log.

Names, owners, labels and error replies come from a store, from other users and from other hosts. Printed as they are,
they could move the cursor, change the title of a terminal, reverse the direction of text, or forge a line of a log.
"""

_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF
"""What Python makes of a byte that is no UTF-8 (error handler ``surrogateescape``)."""


def printable(text: str | bytes) -> str:
    r"""Return *text* with an escape such as ``\n``, ``\x1b`` or ``\u202e`` for every character that is not printable.

    Bytes that are no UTF-8 become escapes too, whether *text* is bytes or was decoded with ``surrogateescape``.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    if _FIRST_BYTE <= ord(letter) <= _LAST_BYTE:
        return f"\\x{ord(letter) & 0xFF:02x}"
    return letter.encode("unicode_escape").decode()
=======
r"""Text that may be shown: on a terminal, in a log, in a status of systemd.

A name from the kernel or from a store may have any bytes. Control characters could change the state of a terminal or
forge a line of a log, and a byte that is not UTF-8 cannot be encoded. Both are shown as ``\xNN``.
"""


def printable(text: str) -> str:
    r"""Return *text* as one line without control characters. Each byte of what cannot be shown becomes ``\xNN``.

    A shell reads the result back with ``$'…'``. *text* may have lone surrogates, as :func:`os.fsdecode` makes them.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    raw = bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else letter.encode("utf-8", "surrogatepass")  # noqa: PLR2004 (PEP 383)
    return "".join(f"\\x{byte:02x}" for byte in raw)
>>>>>>> origin/main
