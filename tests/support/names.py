"""Names that are not plain text: of files and processes, with any bytes."""

ODD = [
    b"\xff\xfe not utf-8",
    b"carriage\rreturn",
    b"new\nline",
    "next\u0085line".encode(),
    "line\u2028separator".encode(),
    b"file\x1cseparator",
    b"escape\x1b[31m",
    b"back\\slash \\040 and\ttab",
    "é".encode(),
    "é".encode()[:1],
    b'it\'s "quoted"',
    b"$(id) `id`; & ~ * !!",
    b"'\x1c' and \\'",
]
