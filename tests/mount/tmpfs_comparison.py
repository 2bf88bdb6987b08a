"""Make the same system calls on a mount and on tmpfs, and compare the results.

The result of a call is a plain value, or the name of its errno. The result on tmpfs is the correct one: this module
contains no expectations.
"""

import errno
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from tests.support.syscalls import renameat2


class SystemCalls:
    """System calls below one directory, and the files opened there.

    Each method returns only what must be equal on both file systems.
    """

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._fds: list[int] = []

    def close_all(self) -> None:
        """Close all open files."""
        while self._fds:
            os.close(self._fds.pop())

    def _full(self, path: bytes) -> bytes:
        return os.path.join(self._root, path)

    def _fd(self, index: int) -> int:
        return self._fds[index % len(self._fds)]

    # --- names

    def mkdir(self, path: bytes, mode: int) -> None:
        os.mkdir(self._full(path), mode)

    def rmdir(self, path: bytes) -> None:
        os.rmdir(self._full(path))

    def unlink(self, path: bytes) -> None:
        os.unlink(self._full(path))

    def symlink(self, target: bytes, path: bytes) -> None:
        os.symlink(target, self._full(path))

    def link(self, path: bytes, new: bytes, follow: bool) -> None:
        os.link(self._full(path), self._full(new), follow_symlinks=follow)

    def rename(self, path: bytes, new: bytes, flags: int) -> None:
        renameat2(self._full(path), self._full(new), flags)

    def mkfifo(self, path: bytes, mode: int) -> None:
        os.mkfifo(self._full(path), mode)

    # --- reading

    def stat(self, path: bytes, follow: bool) -> tuple[int, ...]:
        return _comparable(os.stat(self._full(path), follow_symlinks=follow))

    def listdir(self, path: bytes) -> list[bytes]:
        return sorted(os.listdir(self._full(path)))

    def readlink(self, path: bytes) -> bytes:
        return os.readlink(self._full(path))

    # --- attributes

    def chmod(self, path: bytes, mode: int) -> None:
        os.chmod(self._full(path), mode)

    def utime(self, path: bytes, atime_ns: int, mtime_ns: int, follow: bool) -> tuple[int, int]:
        path = self._full(path)
        os.utime(path, ns=(atime_ns, mtime_ns), follow_symlinks=follow)
        info = os.stat(path, follow_symlinks=follow)
        return info.st_atime_ns, info.st_mtime_ns

    def truncate(self, path: bytes, size: int) -> None:
        os.truncate(self._full(path), size)

    # --- open files, by index

    def open(self, path: bytes, flags: int, mode: int) -> None:
        self._fds.append(os.open(self._full(path), flags | os.O_NONBLOCK, mode))

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
        """Seek, but not in a directory: there each file system defines its own offsets."""
        fd = self._fd(index)
        return -1 if stat.S_ISDIR(os.fstat(fd).st_mode) else os.lseek(fd, offset, whence)

    def ftruncate(self, index: int, size: int) -> None:
        os.ftruncate(self._fd(index), size)

    def fchmod(self, index: int, mode: int) -> None:
        os.fchmod(self._fd(index), mode)

    def fstat(self, index: int) -> tuple[int, ...]:
        return _comparable(os.fstat(self._fd(index)))

    def fsync(self, index: int) -> None:
        os.fsync(self._fd(index))

    def store_by_mapping(self, index: int, data: bytes, position: int) -> int:
        """Change the file through a shared mapping. Return the size of the mapping in bytes."""
        with mmap.mmap(self._fd(index), 0) as mapped:
            start = position % len(mapped)
            piece = data[: len(mapped) - start]
            mapped[start : start + len(piece)] = piece
            mapped.flush()
            return len(mapped)


def _comparable(info: os.stat_result) -> tuple[int, ...]:
    """Return what must be equal on both: no times, no inode numbers, and no size of a directory."""
    size = 0 if stat.S_ISDIR(info.st_mode) else info.st_size
    return info.st_mode, info.st_nlink, info.st_uid, info.st_gid, info.st_rdev, size


class Comparison:
    """A directory on tmpfs and one on a mount. ``history`` lists all calls so far, to explain a difference."""

    def __init__(self, tmpfs: bytes, mount: bytes) -> None:
        self._both = (SystemCalls(tmpfs), SystemCalls(mount))
        self._tmpfs = tmpfs
        self.opened = 0
        self.history: list[str] = []

    def call(self, method: Callable[..., Any], *arguments: Any) -> None:
        """Call *method* of :class:`SystemCalls` on both. Raises AssertionError if the results differ."""
        tmpfs, mount = (_result(method, target, arguments) for target in self._both)
        self.history.append(f"{method.__name__}{arguments} -> {_short(tmpfs)}")
        if tmpfs != mount:
            before = "\n  ".join(self.history)
            raise AssertionError(f"{before}\nbut on the mount: {_short(mount)}")
        if not isinstance(tmpfs, str):
            self.opened += {SystemCalls.open: 1, SystemCalls.dup: 1, SystemCalls.close: -1}.get(method, 0)

    def paths(self) -> list[bytes]:
        """Return the paths of all entries, or a name that does not exist if there are none."""
        return list(self._walk(directories_only=False)) or [b"nothing"]

    def directories(self) -> list[bytes]:
        """Return the paths of all directories. The first is the compared directory itself."""
        return [b"", *self._walk(directories_only=True)]

    def _walk(self, *, directories_only: bool) -> Iterator[bytes]:
        for directory, subdirectories, others in os.walk(self._tmpfs):
            subdirectories.sort()
            for name in subdirectories if directories_only else sorted(subdirectories + others):
                yield os.path.relpath(os.path.join(directory, name), self._tmpfs)

    def close(self) -> None:
        """Close all open files on both."""
        for target in self._both:
            target.close_all()


def _result(method: Callable[..., Any], target: SystemCalls, arguments: tuple[Any, ...]) -> Any:
    """Return the result of *method*, or the name of its error. Only an error is a str."""
    try:
        return method(target, *arguments)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    except ValueError as error:  # Python itself refuses to map an empty file
        return type(error).__name__


def _short(value: object) -> str:
    if isinstance(value, bytes) and len(value) > 40:
        return f"{value[:16]!r}… ({len(value)} bytes)"
    return repr(value)
