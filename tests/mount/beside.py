"""The same system calls on a mount and on a tmpfs directory: each must answer the same on both.

A side knows its directory and its open files; what a call answers is a plain value, or the name of its errno. Nothing
here decides what is right: tmpfs does.
"""

import errno
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.syscalls import renameat2


class Side:
    """One directory and the files opened in it. Each call answers what both sides must agree on."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._fds: list[int] = []

    def close_all(self) -> None:
        """Close whatever is open."""
        while self._fds:
            os.close(self._fds.pop())

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self._root, path)

    def _fd(self, index: int) -> int:
        return self._fds[index % len(self._fds)]

    # --- names

    def mkdir(self, path: bytes, mode: int) -> None:
        os.mkdir(self._at(path), mode)

    def rmdir(self, path: bytes) -> None:
        os.rmdir(self._at(path))

    def unlink(self, path: bytes) -> None:
        os.unlink(self._at(path))

    def symlink(self, target: bytes, path: bytes) -> None:
        os.symlink(target, self._at(path))

    def link(self, path: bytes, new: bytes, follow: bool) -> None:
        os.link(self._at(path), self._at(new), follow_symlinks=follow)

    def rename(self, path: bytes, new: bytes, flags: int) -> None:
        renameat2(self._at(path), self._at(new), flags)

    def mkfifo(self, path: bytes, mode: int) -> None:
        os.mkfifo(self._at(path), mode)

    # --- looking

    def stat(self, path: bytes, follow: bool) -> tuple[int, ...]:
        return _shown(os.stat(self._at(path), follow_symlinks=follow))

    def listdir(self, path: bytes) -> list[bytes]:
        return sorted(os.listdir(self._at(path)))

    def readlink(self, path: bytes) -> bytes:
        return os.readlink(self._at(path))

    # --- attributes

    def chmod(self, path: bytes, mode: int) -> None:
        os.chmod(self._at(path), mode)

    def utime(self, path: bytes, atime_ns: int, mtime_ns: int, follow: bool) -> tuple[int, int]:
        path = self._at(path)
        os.utime(path, ns=(atime_ns, mtime_ns), follow_symlinks=follow)
        seen = os.stat(path, follow_symlinks=follow)
        return seen.st_atime_ns, seen.st_mtime_ns

    def truncate(self, path: bytes, size: int) -> None:
        os.truncate(self._at(path), size)

    # --- open files, by index

    def open(self, path: bytes, flags: int, mode: int) -> None:
        self._fds.append(os.open(self._at(path), flags | os.O_NONBLOCK, mode))

    def close(self, index: int) -> None:
        os.close(self._fds.pop(index % len(self._fds)))

    def dup(self, index: int) -> None:
        self._fds.append(os.dup(self._fd(index)))

    def read(self, index: int, count: int) -> bytes:
        return os.read(self._fd(index), count)

    def write(self, index: int, data: bytes) -> int:
        return os.write(self._fd(index), data)

    def pread(self, index: int, count: int, offset: int) -> bytes:
        return os.pread(self._fd(index), count, offset)

    def pwrite(self, index: int, data: bytes, offset: int) -> int:
        return os.pwrite(self._fd(index), data, offset)

    def lseek(self, index: int, offset: int, whence: int) -> int:
        """Seek, but not in a directory: where that leads is each file system's own affair."""
        fd = self._fd(index)
        return -1 if stat.S_ISDIR(os.fstat(fd).st_mode) else os.lseek(fd, offset, whence)

    def ftruncate(self, index: int, size: int) -> None:
        os.ftruncate(self._fd(index), size)

    def fchmod(self, index: int, mode: int) -> None:
        os.fchmod(self._fd(index), mode)

    def fstat(self, index: int) -> tuple[int, ...]:
        return _shown(os.fstat(self._fd(index)))

    def fsync(self, index: int) -> None:
        os.fsync(self._fd(index))

    def store_by_mapping(self, index: int, data: bytes, position: int) -> int:
        """Change the file through a shared mapping, and return how large the mapping was."""
        with mmap.mmap(self._fd(index), 0) as mapped:
            start = position % len(mapped)
            piece = data[: len(mapped) - start]
            mapped[start : start + len(piece)] = piece
            mapped.flush()
            return len(mapped)


def _shown(seen: os.stat_result) -> tuple[int, ...]:
    """Return what both sides must agree on: no times, no inode numbers, and no size of a directory."""
    size = 0 if stat.S_ISDIR(seen.st_mode) else seen.st_size
    return seen.st_mode, seen.st_nlink, seen.st_uid, seen.st_gid, seen.st_rdev, size


class BackgroundTasks:
    """Two sides in step. ``done`` is what has been asked of both, for whoever has to find a difference."""

    def __init__(self, tmpfs: bytes, mount: bytes) -> None:
        self._sides = (Side(tmpfs), Side(mount))
        self._tmpfs = tmpfs
        self.opened = 0
        self.done: list[str] = []

    def do(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Do *call*, a method of :class:`Side`, on both sides. Raises AssertionError if they answer differently."""
        tmpfs, mount = (_answer(call, side, arguments) for side in self._sides)
        self.done.append(f"{call.__name__}{arguments} -> {_short(tmpfs)}")
        if tmpfs != mount:
            before = "\n  ".join(self.done)
            raise AssertionError(f"{before}\nbut the mount answered {_short(mount)}")
        if not isinstance(tmpfs, str):
            self.opened += {Side.open: 1, Side.dup: 1, Side.close: -1}.get(call, 0)

    def paths(self) -> list[bytes]:
        """Return the paths of what there is."""
        return list(self._walk(directories_only=False)) or [b"nothing"]

    def directories(self) -> list[bytes]:
        """Return the paths of the directories, the first of them the place itself."""
        return [b"", *self._walk(directories_only=True)]

    def _walk(self, *, directories_only: bool) -> Iterator[bytes]:
        for directory, below, others in os.walk(self._tmpfs):
            below.sort()
            for name in below if directories_only else sorted(below + others):
                yield os.path.relpath(os.path.join(directory, name), self._tmpfs)

    def close(self) -> None:
        """Close all open files on both sides."""
        for side in self._sides:
            side.close_all()


def _answer(call: Callable[..., Any], side: Side, arguments: tuple[Any, ...]) -> Any:
    """Return what *call* answers, or the name of its error; no call answers a str otherwise."""
    try:
        return call(side, *arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    except ValueError as error:  # an empty file cannot be mapped: Python finds that out by itself
        return type(error).__name__


def _short(value: object) -> str:
    if isinstance(value, bytes) and len(value) > 40:
        return f"{value[:16]!r}… ({len(value)} bytes)"
    return repr(value)
