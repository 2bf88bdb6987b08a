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
