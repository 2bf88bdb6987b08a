"""Choose a random next operation that must succeed in the current state of the model."""

import mmap
import os
import random
import stat
from collections.abc import Callable
from typing import TypeAlias

from tests.torture import operations as op
from tests.torture.content import content_of
from tests.torture.model import Model, Node
from tests.torture.operation import Operation

FILES = 40
"""The approximate number of files in a writer's directory: above it none are made, far below it few are removed."""
SIZES = (1, 100, 4096, 16_384, 16_385, 70_000, 300_000)
LARGEST = (1 << 20) + 70_000
NAMES = (b"a", b"b c", b"\xff\xfe", b"new\nline", b"d", b"\xc3\xa4", b"-e", b"f" * 255, b"g", b"h", b"tab\t", b"%41")
MODES = (0o600, 0o644, 0o755, 0o700)
XATTRS = (b"user.one", b"user.two")
TIMES = (0, 1, 1_700_000_000_123_456_789, 4_102_444_800_000_000_001)

Proposal: TypeAlias = Callable[[], Operation | None]


class OperationChooser:
    """Chooses operations on *model*. Only *rng* decides."""

    def __init__(self, model: Model, rng: random.Random) -> None:
        self._model = model
        self._rng = rng
        self._proposals: list[tuple[int, Proposal]] = [
            (12, self._create),
            (4, self._symlink),
            (6, self._link),
            (8, self._remove),
            (10, self._rename),
            (4, self._exchange),
            (20, self._write),
            (12, self._append),
            (6, self._truncate),
            (6, self._rewrite),
            (6, self._map_write),
            (6, self._socket_write),
            (8, self._replace),
            (4, self._orphan),
            (4, self._chmod),
            (3, self._utimes),
            (4, self._xattr),
        ]

    def next(self) -> Operation:
        """Return an operation that is possible in the current state."""
        weights = [weight for weight, _ in self._proposals]
        while True:
            (_, propose), *_ = self._rng.choices(self._proposals, weights)
            proposed = propose()
            if proposed is not None:
                return proposed

    # --- proposals

    def _create(self) -> Operation | None:
        path = self._free()
        if path is None or self._count() > FILES:
            return None
        kind = self._rng.choices([stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO], [10, 5, 1])[0]
        return op.Create(path, kind | self._rng.choice(MODES if kind != stat.S_IFDIR else (0o755, 0o700)))

    def _symlink(self) -> Operation | None:
        path = self._free()
        return op.Symlink(path, self._rng.choice(NAMES)) if path and self._count() <= FILES else None

    def _link(self) -> Operation | None:
        path, new = self._some(lambda node: not node.is_directory), self._free()
        return op.Link(path, new) if path and new and self._count() <= FILES else None

    def _remove(self) -> Operation | None:
        path = self._some(lambda node: not node.entries)
        if path is None or (self._count() < FILES // 2 and self._rng.random() < 0.8):
            return None
        return op.Remove(path, self._model.node(path).is_directory)

    def _rename(self) -> Operation | None:
        path, new = self._some(), self._rng.choice([self._free(), self._some()])
        if not path or not new or (new + b"/").startswith(path + b"/"):
            return None
        replaced = self._model.find(new)
        moved = self._model.node(path)
        if replaced and (replaced.is_directory != moved.is_directory or replaced.entries):
            return None
        return op.Rename(path, new)

    def _exchange(self) -> Operation | None:
        path, other = self._some(), self._some()
        if not path or not other:
            return None
        below = (path + b"/").startswith(other + b"/") or (other + b"/").startswith(path + b"/")
        return None if below else op.Exchange(path, other)

    def _write(self) -> Operation | None:
        path = self._regular()
        if path is None:
            return None
        size = len(self._model.node(path).content)
        offset = self._rng.choice([0, self._rng.randint(0, size), size + self._rng.randint(0, 50_000)])
        return op.Write(path, offset % LARGEST, self._seed(), self._size())

    def _append(self) -> Operation | None:
        path = self._regular()
        if path is None or len(self._model.node(path).content) > LARGEST:
            return None
        return op.Write(path, None, self._seed(), self._size())

    def _truncate(self) -> Operation | None:
        path = self._regular()
        return op.Truncate(path, self._rng.choice([0, self._size()])) if path else None

    def _rewrite(self) -> Operation | None:
        path = self._regular()
        return op.Rewrite(path, self._seed(), self._size()) if path else None

    def _map_write(self) -> Operation | None:
        path = self._some(lambda node: node.is_regular and bool(node.content))
        if path is None:
            return None
        size = len(self._model.node(path).content)
        offset = self._rng.randrange(size)
        most = min(size, offset - offset % mmap.PAGESIZE + mmap.PAGESIZE) - offset
        return op.MapWrite(path, offset, self._seed(), self._rng.randint(1, most))

    def _socket_write(self) -> Operation | None:
        path = self._regular()
        return op.SocketWrite(path, self._seed(), self._size()) if path else None

    def _replace(self) -> Operation | None:
        path, temporary = self._regular(), self._free()
        return op.Replace(path, temporary, self._seed(), self._size()) if path and temporary else None

    def _orphan(self) -> Operation | None:
        path = self._regular()
        if path is None or self._names_of(self._model.node(path)) > 1:
            return None
        return op.Orphan(path, self._seed(), self._size())

    def _chmod(self) -> Operation | None:
        path = self._some(lambda node: not stat.S_ISLNK(node.mode))
        if path is None:
            return None
        return op.Chmod(path, self._rng.choice((0o755, 0o700) if self._model.node(path).is_directory else MODES))

    def _utimes(self) -> Operation | None:
        path = self._some()
        return op.Utimes(path, self._rng.choice(TIMES), self._rng.choice(TIMES)) if path else None

    def _xattr(self) -> Operation | None:
        path = self._some(lambda node: node.is_directory or node.is_regular)
        if path is None:
            return None
        name = self._rng.choice(XATTRS)
        remove = name in self._model.node(path).xattrs and self._rng.random() < 0.5
        return op.SetXattr(path, name, None if remove else content_of(self._seed(), self._rng.randint(0, 300)))

    # --- random values

    def _some(self, fits: Callable[[Node], bool] = lambda _: True) -> bytes | None:
        """Return the path of a random node that *fits*, or None. Never the writer's directory itself."""
        paths = [path for path, node in self._model.walk() if path and fits(node)]
        return self._rng.choice(paths) if paths else None

    def _regular(self) -> bytes | None:
        return self._some(lambda node: node.is_regular)

    def _free(self) -> bytes | None:
        """Return a path that does not exist, or None."""
        directory = self._rng.choice([path for path, node in self._model.walk() if node.is_directory])
        free = [name for name in NAMES if name not in self._model.node(directory).entries]
        if not free or directory.count(b"/") > 3:
            return None
        return os.path.join(directory, self._rng.choice(free))

    def _count(self) -> int:
        return sum(1 for _ in self._model.walk())

    def _names_of(self, wanted: Node) -> int:
        return sum(1 for _, node in self._model.walk() if node is wanted)

    def _seed(self) -> int:
        return self._rng.getrandbits(32)

    def _size(self) -> int:
        return self._rng.choice((*SIZES, *SIZES, *SIZES, self._rng.randint(1, LARGEST)))
