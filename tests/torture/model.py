"""A model of one writer's directory: a simple tree that changes step by step with each acknowledged operation.

Each step is one atomic change. The model knows nothing about files, stores or mounts. It remembers which nodes an
operation touches, so that the writer can record their stat results afterwards.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.trees import Stamp


@dataclass(eq=False, slots=True)
class Node:
    """A file of any kind. *stamp* is its last stat result, or None if it was touched since."""

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
        """Return the node at *path*, which must exist."""
        node = self.root
        for name in path.split(b"/") if path else ():
            node = node.entries[name]
        return node

    def find(self, path: bytes) -> Node | None:
        """Return the node at *path*, or None. Its directory must exist."""
        directory, name = os.path.split(path)
        return self.node(directory).entries.get(name)

    def look_for(self, path: bytes) -> Node | None:
        """Return the node at *path*, or None. Its directory may be missing."""
        node: Node | None = self.root
        for name in path.split(b"/") if path else ():
            node = node.entries.get(name) if node is not None else None
        return node

    def walk(self) -> Iterator[tuple[bytes, Node]]:
        """Yield path and node of every entry, the directory itself first."""
        waiting = [(b"", self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            waiting += [(os.path.join(path, name), child) for name, child in node.entries.items()]

    # --- changes; each is a part of one step

    def put(self, path: bytes, node: Node) -> None:
        """Put *node* at *path*. A node that was there loses this name."""
        directory, name = self._parent_and_name(path)
        replaced = directory.entries.get(name)
        if replaced is not None:
            self.touch(replaced)
        directory.entries[name] = self.touch(node)

    def take(self, path: bytes) -> Node:
        """Remove *path*, and return its node."""
        directory, name = self._parent_and_name(path)
        return self.touch(directory.entries.pop(name))

    def touch(self, node: Node) -> Node:
        """Record that *node* has changed since its last stat, and return it."""
        node.stamp = None
        self._touched.add(node)
        return node

    def _parent_and_name(self, path: bytes) -> tuple[Node, bytes]:
        directory, name = os.path.split(path)
        return self.touch(self.node(directory)), name

    # --- touched nodes

    def has_touched(self, node: Node) -> bool:
        """Whether *node* was touched since the last forget or take."""
        return node in self._touched

    def forget_touched(self) -> None:
        """Forget which nodes were touched."""
        self._touched.clear()

    def take_touched(self) -> list[bytes]:
        """Return one path of each touched node that still exists, and forget which were touched."""
        touched, self._touched = self._touched, set()
        return list({node: path for path, node in self.walk() if node in touched}.values())
