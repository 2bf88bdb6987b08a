"""What the thread that waits for an answer is doing: whether it makes a new name, as ``mkdir`` does.

Before the kernel makes a name, it looks the name up, and its request is the same as for every lookup. The system call
itself tells the two apart, and its path tells whether the name is the last one. If that cannot be read (another user's
process, a kernel or a machine without this), the answer is that nothing is made. So the answer may decide what is
shown. It must never decide what is stored.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import trio

_LONGEST_PATH = 4096
_PAGE = os.sysconf("SC_PAGESIZE")
_LARGEST_32_BIT = 0xFFFF_FFFF
_TRIES = 10
_PAUSE_SECONDS = 0.0005
_PATIENCE_SECONDS = 1.0


class _Maker(NamedTuple):
    """A system call that makes a name: which argument is its path, and which one may say O_CREAT (-1: none)."""

    path: int
    flags: int = -1


_MAKERS: Final[dict[str, dict[int, _Maker]]] = {
    "x86_64": {
        2: _Maker(0, 1),  # open
        82: _Maker(1),  # rename
        83: _Maker(0),  # mkdir
        85: _Maker(0),  # creat
        86: _Maker(1),  # link
        88: _Maker(1),  # symlink
        133: _Maker(0),  # mknod
        257: _Maker(1, 2),  # openat
        258: _Maker(1),  # mkdirat
        259: _Maker(1),  # mknodat
        264: _Maker(3),  # renameat
        265: _Maker(3),  # linkat
        266: _Maker(2),  # symlinkat
        316: _Maker(3),  # renameat2
    },
    "aarch64": {
        33: _Maker(1),  # mknodat
        34: _Maker(1),  # mkdirat
        36: _Maker(2),  # symlinkat
        37: _Maker(3),  # linkat
        38: _Maker(3),  # renameat
        56: _Maker(1, 2),  # openat
        276: _Maker(3),  # renameat2
    },
}
"""The calls by machine and number (:manpage:`syscalls(2)`). A 32-bit program has other numbers."""


async def makes(thread: int, name: bytes) -> bool:
    """Return whether *thread*, which waits for a lookup of *name*, makes a file of that name of any kind."""
    call = await _system_call(thread)
    maker = None if call is None else _MAKERS.get(os.uname().machine, {}).get(call[0])
    if call is None or maker is None or (maker.flags >= 0 and not call[1 + maker.flags] & os.O_CREAT):
        return False
    with trio.move_on_after(_PATIENCE_SECONDS):  # the caller's memory may be locked until we answer another request
        path = await trio.to_thread.run_sync(_read_path, thread, call[1 + maker.path], abandon_on_cancel=True)
        return _ends_with(path, name)
    return False


async def _system_call(thread: int) -> list[int] | None:
    """Return the number and the arguments of the call that *thread* is in (``/proc/PID/syscall``, :manpage:`proc(5)`).

    A thread that has just asked may still be about to wait; then this looks again.
    """
    for _ in range(_TRIES):
        try:
            words = Path(f"/proc/{thread}/syscall").read_text().split()  # noqa: ASYNC240 (procfs never blocks)
        except OSError:
            return None
        if words and words[0] != "running":
            numbers = [int(word, 0) for word in words]
            is_64_bit = len(numbers) > 2 and numbers[-2] > _LARGEST_32_BIT  # noqa: PLR2004 (the stack pointer is there)
            return numbers if is_64_bit else None
        await trio.sleep(_PAUSE_SECONDS)
    return None


def _read_path(thread: int, address: int) -> bytes:
    """Return the path at *address* in the memory of *thread*, or b"" if that cannot be read."""
    path = b""
    with suppress(OSError), Path(f"/proc/{thread}/mem").open("rb", buffering=0) as memory:
        while b"\0" not in path and len(path) < _LONGEST_PATH:
            memory.seek(address + len(path))
            part = memory.read(_PAGE - (address + len(path)) % _PAGE)  # the next page may not be there
            if not part:  # the process has ended
                break
            path += part
    path, end, _ = path.partition(b"\0")
    return path if end else b""


def _ends_with(path: bytes, name: bytes) -> bool:
    """Return whether *name* is the last component of *path*, and none above it."""
    names = [part for part in path.split(b"/") if part not in {b"", b"."}]
    return names[-1:] == [name] and names.count(name) == 1
