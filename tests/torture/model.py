"""What one writer's directory should hold: a naive tree, changed step by step as its operations are acknowledged.

Each step is one change that must be stored whole or not at all. The model knows nothing of files, stores or mounts.
It notes which nodes an operation touches, so that the writer can record what their stat shows afterwards.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.trees import Stamp


@dataclass(eq=False, slots=True)
class Node:
    """A file of any kind. *stamp* is None while nobody has looked at it since it was last touched."""

    mode: int
    content: bytes = b""
    target: bytes = b""
    entries: dict[bytes, "Node"] = field(default_factory=dict)
    xattrs: dict[bytes, bytes] = field(default_factory=dict)
    stamp: Stamp | None = None

    @property
    def is_directory(self) -> bool:
        """Whether this is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_regular(self) -> bool:
        """Whether this is a regular file."""
        return stat.S_ISREG(self.mode)


class Model:
    """A tree of nodes. Paths are bytes, relative to the writer's directory, which is ``b""`` itself."""

    def __init__(self) -> None:
        self.root = Node(stat.S_IFDIR | 0o755)
        self._touched: set[Node] = set()

    def node(self, path: bytes) -> Node:
        """Return what is at *path*."""
        node = self.root
        for name in path.split(b"/") if path else ():
            node = node.entries[name]
        return node

    def find(self, path: bytes) -> Node | None:
        """Return what is at *path*, or None; its directory must exist."""
        directory, name = os.path.split(path)
        return self.node(directory).entries.get(name)

    def look_for(self, path: bytes) -> Node | None:
        """Return what is at *path*, or None; its directory need not exist."""
        node: Node | None = self.root
        for name in path.split(b"/") if path else ():
            node = node.entries.get(name) if node is not None else None
        return node

    def walk(self) -> Iterator[tuple[bytes, Node]]:
        """Yield path and node of everything, the directory itself first."""
        waiting = [(b"", self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            waiting += [(os.path.join(path, name), child) for name, child in node.entries.items()]

    # --- changing; each of these belongs to one step

    def put(self, path: bytes, node: Node) -> None:
        """Let *path* mean *node*; what was there loses a name."""
        directory, name = self._place(path)
        replaced = directory.entries.get(name)
        if replaced is not None:
            self.touch(replaced)
        directory.entries[name] = self.touch(node)

    def take(self, path: bytes) -> Node:
        """Remove *path* and return what was there."""
        directory, name = self._place(path)
        return self.touch(directory.entries.pop(name))

    def touch(self, node: Node) -> Node:
        """Note that *node* is no longer what it was last seen to be, and return it."""
        node.stamp = None
        self._touched.add(node)
        return node

    def _place(self, path: bytes) -> tuple[Node, bytes]:
        directory, name = os.path.split(path)
        return self.touch(self.node(directory)), name

    # --- what has been touched

    def has_touched(self, node: Node) -> bool:
        """Whether *node* has been touched since that was last forgotten."""
        return node in self._touched

    def forget_touched(self) -> None:
        """Begin anew: nothing has been touched."""
        self._touched.clear()

    def take_touched(self) -> list[bytes]:
        """Return a path of each node touched since that was last forgotten, and still there; and forget it."""
        touched, self._touched = self._touched, set()
        return list({node: path for path, node in self.walk() if node in touched}.values())
