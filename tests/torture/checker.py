"""Comparing a writer's directory with what its model allows: everything in it, or a clear account of the difference."""

import copy
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from tests.torture.log import apply
from tests.torture.model import Model, Node, Stamp
from tests.torture.operations import Operation

_SHOWN = 10


class Facts(NamedTuple):
    """What there is to know of one path. *same_as* is the first path of the same file."""

    mode: int
    nlink: int
    content: bytes
    target: bytes
    xattrs: tuple[tuple[bytes, bytes], ...]
    same_as: bytes


class Found(NamedTuple):
    """What is in a directory, by path: facts, and what stat showed."""

    facts: dict[bytes, Facts]
    stamps: dict[bytes, Stamp]


class Verdict(NamedTuple):
    """What a directory holds: a *model* of it, and how many *steps* of the doubtful operation are in it."""

    model: Model
    steps: int


def check(root: bytes, model: Model, doubtful: Operation | None) -> Verdict:
    """Return which of the allowed states the directory *root* is in. Raises AssertionError if in none.

    Allowed is what *model* describes, and that after each step of *doubtful*.
    """
    found = look_at(root)
    accounts = []
    for steps, candidate in _candidates(model, doubtful):
        differences = _differences(candidate, found)
        if not differences:
            return Verdict(candidate, steps)
        accounts.append(f"with {steps} steps of it: " + "\n    ".join(differences[:_SHOWN]))
    told = "\n  ".join(accounts)
    raise AssertionError(f"{os.fsdecode(root)} is in no allowed state; in doubt was {doubtful!r}\n  {told}")


def _candidates(model: Model, doubtful: Operation | None) -> Iterator[tuple[int, Model]]:
    yield 0, model
    steps = 1
    while doubtful is not None:
        candidate = copy.deepcopy(model)
        if not apply(doubtful, candidate, steps):
            return
        yield steps, candidate
        steps += 1


def look_at(root: bytes) -> Found:
    """Return what is in the directory *root*."""
    facts: dict[bytes, Facts] = {}
    stamps: dict[bytes, Stamp] = {}
    first: dict[int, bytes] = {}
    for path in sorted(_paths(root)):
        full = os.path.join(root, path)
        seen = os.lstat(full)
        same_as = first.setdefault(seen.st_ino, path)
        facts[path] = Facts(
            seen.st_mode, seen.st_nlink, _content(full, seen), _target(full, seen), _xattrs(full), same_as
        )
        stamps[path] = Stamp(seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns)
    return Found(facts, stamps)


def _paths(root: bytes, path: bytes = b"") -> Iterator[bytes]:
    yield path
    with os.scandir(os.path.join(root, path)) as entries:
        for entry in entries:
            below = os.path.join(path, entry.name)
            if entry.is_dir(follow_symlinks=False):
                yield from _paths(root, below)
            else:
                yield below


def _content(full: bytes, seen: os.stat_result) -> bytes:
    if not stat.S_ISREG(seen.st_mode):
        return b""
    with open(full, "rb") as file:
        content = file.read()
    assert len(content) == seen.st_size, f"{full!r}: size {seen.st_size}, but {len(content)} bytes"
    return content


def _target(full: bytes, seen: os.stat_result) -> bytes:
    return os.readlink(full) if stat.S_ISLNK(seen.st_mode) else b""


def _xattrs(full: bytes) -> tuple[tuple[bytes, bytes], ...]:
    names = sorted(map(os.fsencode, os.listxattr(full, follow_symlinks=False)))
    return tuple((name, os.getxattr(full, name, follow_symlinks=False)) for name in names)


def expected(model: Model) -> dict[bytes, Facts]:
    """Return what *model* says of each path."""
    nodes = dict(sorted(model.walk()))
    paths: dict[Node, list[bytes]] = {}
    for path, node in nodes.items():
        paths.setdefault(node, []).append(path)
    return {
        path: Facts(
            node.mode,
            _links(node, len(paths[node])),
            node.content,
            node.target,
            tuple(sorted(node.xattrs.items())),
            paths[node][0],
        )
        for path, node in nodes.items()
    }


def _links(node: Node, names: int) -> int:
    if not node.is_directory:
        return names
    return 2 + sum(child.is_directory for child in node.entries.values())


def _differences(model: Model, found: Found) -> list[str]:
    wanted = expected(model)
    differences = [f"{path!r} is missing" for path in wanted.keys() - found.facts.keys()]
    differences += [f"{path!r} is there" for path in found.facts.keys() - wanted.keys()]
    for path, node in model.walk():
        if path not in found.facts:
            continue
        differences += _differing(path, wanted[path], found.facts[path])
        if node.stamp is not None and node.stamp != found.stamps[path]:
            differences.append(f"{path!r}: seen before as {node.stamp}, now {found.stamps[path]}")
    return differences


def _differing(path: bytes, wanted: Facts, found: Facts) -> Iterator[str]:
    for name, one, other in zip(Facts._fields, wanted, found, strict=True):
        if one != other:
            yield f"{path!r}: {name} should be {_short(one)}, is {_short(other)}"


def _short(value: object) -> str:
    if isinstance(value, bytes) and len(value) > 80:
        return f"{value[:24]!r}… ({len(value)} bytes, hash {hash(value):x})"
    return oct(value) if isinstance(value, int) else repr(value)
