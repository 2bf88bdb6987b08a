"""What other users of this host see of this process's command line (``ps``, :manpage:`proc_pid_cmdline(5)`).

The kernel shows the memory in which it put the arguments when the process began, for as long as the process and its
forks live. So a password is overwritten there. That works for every way to start vfsd, because the kernel itself says
where the memory is.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from vfsd.store.url import hidden

_OPTION = "--store"
_ARG_START, _ARG_END = 45, 46
"""Fields of :manpage:`proc_pid_stat(5)`, counted from the one that follows the command's name."""


def hide_passwords(arguments: Sequence[str]) -> None:
    """Overwrite the passwords of the stores that *arguments* name. Without /proc nobody sees them: nothing is done."""
    for url in _stores(arguments):
        if hidden(url) != url:
            with contextlib.suppress(OSError):
                _overwrite(os.fsencode(url), os.fsencode(hidden(url)))


def _stores(arguments: Sequence[str]) -> Iterator[str]:
    for before, argument in pairwise(("", *arguments)):
        name, equals, value = argument.partition("=")
        if before == _OPTION:
            yield argument
        elif equals and name == _OPTION:
            yield value


def _overwrite(secret: bytes, shown: bytes) -> None:
    """Write *shown* over every argument that ends with *secret*. Spaces fill it up; if it is too long, asterisks do."""
    start, end = _memory()
    replacement = shown.ljust(len(secret)) if len(shown) <= len(secret) else b"*" * len(secret)
    arguments = ctypes.string_at(start, end - start)
    position = arguments.find(secret + b"\0")
    while position >= 0:
        ctypes.memmove(start + position, replacement, len(replacement))
        position = arguments.find(secret + b"\0", position + 1)


def _memory() -> tuple[int, int]:
    """Return where the arguments of this process begin and end. Raises OSError."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[_ARG_START]), int(fields[_ARG_END])
