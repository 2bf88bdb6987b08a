"""Scenarios of the SQLite store on a full or read-only disk.

Usage: ``python -m tests.store.small_disk SCENARIO DIRECTORY``. It mounts a small tmpfs on DIRECTORY. Run it in its own
mount namespace (:manpage:`unshare(1)`): the tmpfs goes away with the namespace.
"""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from tests.support.stores import ScopeWriter, SqliteBackend, claimed, directory, regular, stored
from vfsd.errors import StoreFull, StoreReadOnly
from vfsd.tree.change import CHUNK_SIZE, ROOT, DropEntry, DropInode, PutChunks, PutEntry, PutInode

SCOPE = "small"
_CHUNKS = dict.fromkeys(range((1 << 20) // CHUNK_SIZE), bytes(range(256)) * (CHUNK_SIZE // 256))


async def add_file(writer: ScopeWriter, ino: int) -> None:
    """Add a file of 1 MiB."""
    await writer.commit(PutInode(ino, regular()), PutEntry(ROOT, b"%d" % ino, ino, ino + 1), PutChunks(ino, _CHUNKS))


async def remove_file(writer: ScopeWriter, ino: int) -> None:
    await writer.commit(DropEntry(ROOT, b"%d" % ino), DropInode(ino, regular()), grows=False)


async def add_until_full(writer: ScopeWriter, first: int) -> int:
    """Add files until the disk is full. Return the number of the file that did not fit."""
    for ino in range(first, first + 1000):
        try:
            await add_file(writer, ino)
        except StoreFull:
            return ino
    raise AssertionError("the disk is never full")


async def grow_and_shrink(backend: SqliteBackend) -> None:
    """A full disk refuses only changes that grow, and stores nothing of them. Changes that shrink free space again."""
    async with claimed(backend, SCOPE) as writer:
        await writer.commit(PutInode(ROOT, directory()))
        first = 2
        for _ in range(2):
            full = await add_until_full(writer, first)
            assert full - first > 5, "the disk was full too early"
            found = await stored(backend, SCOPE)
            assert set(found.inodes) == {ROOT, *range(first, full)}
            assert len(found.chunks) == (full - first) * len(_CHUNKS)
            assert (await writer.store.capacity()).free < 1 << 20
            for ino in range(first, full):
                await remove_file(writer, ino)
            assert (await writer.store.capacity()).free > 5 << 20
            first = full
        await add_file(writer, first)


async def remove_and_add_at_once(backend: SqliteBackend) -> None:
    """The space of a large file can be used right after its removal, although its rows are deleted later."""
    async with claimed(backend, SCOPE) as writer:
        with suppress(StoreFull):
            for first in range(0, 1 << 20, len(_CHUNKS)):
                chunks = dict.fromkeys(range(first, first + len(_CHUNKS)), _CHUNKS[0])
                await writer.commit(PutInode(2, regular()), PutChunks(2, chunks))
        await writer.commit(DropInode(2, regular()), grows=False)
        for ino in range(3, 6):
            await add_file(writer, ino)
    assert set((await stored(backend, SCOPE)).inodes) == {3, 4, 5}


async def filled_by_others(backend: SqliteBackend) -> None:
    """If another program fills the disk, no change is stored in part, and commits work again once there is space."""
    filler = backend.path.with_name("filler")
    async with claimed(backend, SCOPE) as writer:
        for ino in range(2, 5):
            await add_file(writer, ino)
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        for _ in range(2):
            for attempt in (add_file(writer, 5), remove_file(writer, 2)):
                with suppress(StoreFull):
                    await attempt
        left = set((await stored(backend, SCOPE)).inodes)
        assert left in ({2, 3, 4}, {3, 4}), left
        filler.unlink()
        await add_file(writer, 5)
        await remove_file(writer, 3)
    found = await stored(backend, SCOPE)
    assert set(found.inodes) == left - {3} | {5}
    assert len(found.chunks) == len(found.inodes) * len(_CHUNKS)


def protect(path: Path) -> None:
    """Make a file read-only for everybody, root included."""
    subprocess.run(["mount", "--bind", path, path], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)


async def write_protected(backend: SqliteBackend) -> None:
    """A scope in a read-only file can be read, but not claimed."""
    async with claimed(backend, SCOPE) as writer:
        await add_file(writer, 2)
    protect(backend.path)
    assert set((await stored(backend, SCOPE)).inodes) == {2}
    with pytest.raises(StoreReadOnly, match=f"sqlite:{backend.path}: .*readonly.*writable"):
        async with claimed(backend, SCOPE):
            pass


SCENARIOS: dict[str, Callable[[SqliteBackend], Awaitable[None]]] = {
    "grow_and_shrink": grow_and_shrink,
    "remove_and_add_at_once": remove_and_add_at_once,
    "filled_by_others": filled_by_others,
    "write_protected": write_protected,
}


def main(scenario: str, disk: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "vfsd-test", disk], check=True)
    trio.run(SCENARIOS[scenario], SqliteBackend(Path(disk) / "scopes.db"))


if __name__ == "__main__":
    main(*sys.argv[1:])
