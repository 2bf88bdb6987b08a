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
