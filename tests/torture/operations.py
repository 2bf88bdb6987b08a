"""The operations of a writer, each as its system calls and as its steps in the model.

An operation is one change if its docstring does not say otherwise. ``run`` yields after each change that is known to be
done, ``steps`` after each change in the model. Every change is atomic: the state is the one before it or after it. Logs
contain operations as plain values.
"""

import errno
import mmap
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

import vfsd
from tests.support.syscalls import closing_fd, renameat2
from tests.torture.content import content_of, write, write_to_model
from tests.torture.model import Model, Node
from vfsd.tree.plan_names import RENAME_EXCHANGE


class Create(NamedTuple):
    """Make an empty file, directory or FIFO, according to *mode*."""

    path: bytes
    mode: int

    def run(self, root: bytes) -> Iterator[None]:
        path, permissions = os.path.join(root, self.path), stat.S_IMODE(self.mode)
        if stat.S_ISDIR(self.mode):
            os.mkdir(path, permissions)
        elif stat.S_ISFIFO(self.mode):
            os.mkfifo(path, permissions)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, permissions))
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.put(self.path, Node(self.mode))
        yield False


class Symlink(NamedTuple):
    """Make a symbolic link."""

    path: bytes
    target: bytes

    def run(self, root: bytes) -> Iterator[None]:
        os.symlink(self.target, os.path.join(root, self.path))
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.put(self.path, Node(stat.S_IFLNK | 0o777, target=self.target))
        yield False


class Link(NamedTuple):
    """Give a file another name."""

    path: bytes
    new: bytes

    def run(self, root: bytes) -> Iterator[None]:
        os.link(os.path.join(root, self.path), os.path.join(root, self.new), follow_symlinks=False)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.put(self.new, model.node(self.path))
        yield False


class Remove(NamedTuple):
    """Unlink a file or remove an empty directory."""

    path: bytes
    directory: bool

    def run(self, root: bytes) -> Iterator[None]:
        (os.rmdir if self.directory else os.unlink)(os.path.join(root, self.path))
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.take(self.path)
        yield False


class Rename(NamedTuple):
    """Rename, replacing what is there."""

    path: bytes
    new: bytes

    def run(self, root: bytes) -> Iterator[None]:
        os.rename(os.path.join(root, self.path), os.path.join(root, self.new))
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        if model.node(self.path) is not model.find(self.new):
            model.put(self.new, model.take(self.path))
        yield False


class Exchange(NamedTuple):
    """Exchange two names."""

    path: bytes
    other: bytes

    def run(self, root: bytes) -> Iterator[None]:
        renameat2(os.path.join(root, self.path), os.path.join(root, self.other), RENAME_EXCHANGE)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        if model.node(self.path) is not model.node(self.other):
            one, two = model.take(self.path), model.take(self.other)
            model.put(self.path, two)
            model.put(self.other, one)
        yield False


class Write(NamedTuple):
    """Write at an offset, or at the end (None). It is one change for each request of the kernel, usually one."""

    path: bytes
    offset: int | None
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        append = os.O_APPEND if self.offset is None else 0
        fd = os.open(os.path.join(root, self.path), os.O_WRONLY | append)
        with closing_fd(fd):
            yield from write(fd, content_of(self.seed, self.size), self.offset or 0)

    def steps(self, model: Model) -> Iterator[bool]:
        node = model.node(self.path)
        offset = len(node.content) if self.offset is None else self.offset
        yield from write_to_model(model, node, offset, content_of(self.seed, self.size))


class Truncate(NamedTuple):
    """Set a file's size."""

    path: bytes
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        os.truncate(os.path.join(root, self.path), self.size)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        node = model.touch(model.node(self.path))
        node.content = node.content[: self.size].ljust(self.size, b"\0")
        yield False


class Rewrite(NamedTuple):
    """Open with O_TRUNC and write. The truncation is stored together with the first write."""

    path: bytes
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        fd = os.open(os.path.join(root, self.path), os.O_WRONLY | os.O_TRUNC)
        with closing_fd(fd):
            yield from write(fd, content_of(self.seed, self.size), 0)

    def steps(self, model: Model) -> Iterator[bool]:
        node = self.empty(model)
        yield from write_to_model(model, node, 0, content_of(self.seed, self.size))

    def empty(self, model: Model) -> Node:
        """Truncate only. This is the final state if the first write fails."""
        node = model.touch(model.node(self.path))
        node.content = b""
        return node


_SOCKET_SECONDS = 600.0
"""Longer than any fault lasts: an answer that does not come means that the daemon has ended."""


class MapWrite(NamedTuple):
    """Write within one page of a file through a shared mapping, and msync.

    The content reaches the mapping by read(2) from a pipe. If the daemon has ended, that fails with EFAULT. A store
    instruction of the processor would end this process with SIGBUS.
    """

    path: bytes
    offset: int
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        data = content_of(self.seed, self.size)
        fd = os.open(os.path.join(root, self.path), os.O_RDWR)
        with closing_fd(fd):
            self._map_and_write(fd, data)
        yield

    def _map_and_write(self, fd: int, data: bytes) -> None:
        if os.fstat(fd).st_size < self.offset + self.size:
            raise OSError(errno.ENXIO, "the file is shorter than the model says")
        with mmap.mmap(fd, 0) as mapping:
            _copy_to_mapping(mapping, self.offset, data)
            start = self.offset - self.offset % mmap.PAGESIZE
            mapping.flush(start, min(mmap.PAGESIZE, len(mapping) - start))

    def steps(self, model: Model) -> Iterator[bool]:
        node = model.touch(model.node(self.path))
        data, end = content_of(self.seed, self.size), self.offset + self.size
        node.content = node.content[: self.offset] + data + node.content[end:]
        yield False


def _copy_to_mapping(mapping: mmap.mmap, offset: int, data: bytes) -> None:
    reading, writing = os.pipe()
    with closing_fd(reading):
        with closing_fd(writing):
            os.write(writing, data)
        try:
            with memoryview(mapping) as view, view[offset : offset + len(data)] as place:
                assert os.readv(reading, [place]) == len(data)
        except OSError as error:
            if error.errno == errno.EFAULT:
                raise OSError(errno.ENOTCONN, "the page cannot be read: the daemon has ended") from error
            raise


class SocketWrite(NamedTuple):
    """Replace the content of a file by way of the control socket."""

    path: bytes
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        mountpoint, directory = os.path.split(root)
        try:
            with vfsd.connect(os.fsdecode(mountpoint), timeout=_SOCKET_SECONDS) as vfs:
                vfs.write_file(os.path.join(directory, self.path), content_of(self.seed, self.size))
        except (ConnectionError, TimeoutError) as error:
            raise OSError(errno.ENOTCONN, "the daemon has ended") from error
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.touch(model.node(self.path)).content = content_of(self.seed, self.size)
        yield False


class Replace(NamedTuple):
    """Create a temporary file, write it, and rename it over another file, as editors do. These are several changes."""

    path: bytes
    temporary: bytes
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        temporary = os.path.join(root, self.temporary)
        fd = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        with closing_fd(fd):
            yield
            yield from write(fd, content_of(self.seed, self.size), 0)
            os.fsync(fd)
        os.rename(temporary, os.path.join(root, self.path))
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        node = Node(stat.S_IFREG | 0o644)
        model.put(self.temporary, node)
        yield False
        yield from write_to_model(model, node, 0, content_of(self.seed, self.size))
        model.put(self.path, model.take(self.temporary))
        yield False


class Orphan(NamedTuple):
    """Unlink an open file, and continue to write to it. Writes to a file without a name are not stored."""

    path: bytes
    seed: int
    size: int

    def run(self, root: bytes) -> Iterator[None]:
        path = os.path.join(root, self.path)
        fd = os.open(path, os.O_WRONLY)
        with closing_fd(fd):
            os.unlink(path)
            yield
            for _ in write(fd, content_of(self.seed, self.size), 0):
                pass
            os.fchmod(fd, 0o600)
            os.ftruncate(fd, 1)

    def steps(self, model: Model) -> Iterator[bool]:
        model.take(self.path)
        yield False


class Chmod(NamedTuple):
    """Change permissions."""

    path: bytes
    permissions: int

    def run(self, root: bytes) -> Iterator[None]:
        os.chmod(os.path.join(root, self.path), self.permissions)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        node = model.touch(model.node(self.path))
        node.mode = stat.S_IFMT(node.mode) | self.permissions
        yield False


class Utimes(NamedTuple):
    """Set both times, in nanoseconds."""

    path: bytes
    atime_ns: int
    mtime_ns: int

    def run(self, root: bytes) -> Iterator[None]:
        os.utime(os.path.join(root, self.path), ns=(self.atime_ns, self.mtime_ns), follow_symlinks=False)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        model.touch(model.node(self.path))
        yield False


class SetXattr(NamedTuple):
    """Set an extended attribute, or remove it (None)."""

    path: bytes
    name: bytes
    value: bytes | None

    def run(self, root: bytes) -> Iterator[None]:
        path = os.path.join(root, self.path)
        if self.value is None:
            os.removexattr(path, self.name)
        else:
            os.setxattr(path, self.name, self.value)
        yield

    def steps(self, model: Model) -> Iterator[bool]:
        xattrs = model.touch(model.node(self.path)).xattrs
        if self.value is None:
            del xattrs[self.name]
        else:
            xattrs[self.name] = self.value
        yield False
