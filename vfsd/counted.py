"""A number and its noun, for people: so that no message says "1 files"."""


def counted(number: int, noun: str) -> str:
    """Return *number* and *noun*, which is in the singular, as in ``1 file`` and ``3 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
