"""What the SQLite store does on a disk that is full or read-only: ``python -m tests.store.disks SCENARIO DIRECTORY``.

To be run in a mount namespace of its own (:manpage:`unshare(1)`), with which its small disk goes away.
"""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from tests.support.stores import Mount, SqlitePlace, directory, mounted, regular, stored
from vfsd.errors import StoreFull, StoreReadOnly
from vfsd.tree.change import CHUNK_SIZE, ROOT, DropEntry, DropInode, PutChunks, PutEntry, PutInode

SCOPE = "small"
_CHUNKS = dict.fromkeys(range((1 << 20) // CHUNK_SIZE), bytes(range(256)) * (CHUNK_SIZE // 256))


async def add_file(mount: Mount, ino: int) -> None:
    """Add a file of 1 MiB."""
    await mount.commit(PutInode(ino, regular()), PutEntry(ROOT, b"%d" % ino, ino, ino), PutChunks(ino, _CHUNKS))


async def remove_file(mount: Mount, ino: int) -> None:
    await mount.commit(DropEntry(ROOT, b"%d" % ino), DropInode(ino, regular()), grows=False)


async def add_until_full(mount: Mount, first: int) -> int:
    """Add files until there is no room for the next; return its number."""
    for ino in range(first, first + 1000):
        try:
            await add_file(mount, ino)
        except StoreFull:
            return ino
    raise AssertionError("the disk is never full")


async def grow_and_shrink(place: SqlitePlace) -> None:
    """A full disk refuses what grows, and only that; nothing of it is stored; what shrinks makes room again."""
    async with mounted(place, SCOPE) as mount:
        await mount.commit(PutInode(ROOT, directory()))
        first = 2
        for _ in range(2):
            full = await add_until_full(mount, first)
            assert full - first > 5, "there was room for more"
            found = await stored(place, SCOPE)
            assert set(found.inodes) == {ROOT, *range(first, full)}
            assert len(found.chunks) == (full - first) * len(_CHUNKS)
            assert (await mount.store.capacity()).free < 1 << 20
            for ino in range(first, full):
                await remove_file(mount, ino)
            assert (await mount.store.capacity()).free > 5 << 20
            first = full
        await add_file(mount, first)


async def filled_by_others(place: SqlitePlace) -> None:
    """Where others have taken the last byte, nothing is stored in part, and all goes on once there is room."""
    hog = place.path.with_name("hog")
    async with mounted(place, SCOPE) as mount:
        for ino in range(2, 5):
            await add_file(mount, ino)
        with hog.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        for _ in range(2):
            for attempt in (add_file(mount, 5), remove_file(mount, 2)):
                with suppress(StoreFull):
                    await attempt
        left = set((await stored(place, SCOPE)).inodes)
        assert left in ({2, 3, 4}, {3, 4}), left
        hog.unlink()
        await add_file(mount, 5)
        await remove_file(mount, 3)
    found = await stored(place, SCOPE)
    assert set(found.inodes) == left - {3} | {5}
    assert len(found.chunks) == len(found.inodes) * len(_CHUNKS)


def protect(path: Path) -> None:
    """Let nobody write to a file, not even root."""
    subprocess.run(["mount", "--bind", path, path], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)


async def write_protected(place: SqlitePlace) -> None:
    """A file that cannot be written can be read, and is not claimed."""
    async with mounted(place, SCOPE) as mount:
        await add_file(mount, 2)
    protect(place.path)
    assert set((await stored(place, SCOPE)).inodes) == {2}
    with pytest.raises(StoreReadOnly, match=f"sqlite:{place.path}: .*readonly.*writable"):
        async with mounted(place, SCOPE):
            pass


SCENARIOS: dict[str, Callable[[SqlitePlace], Awaitable[None]]] = {
    "grow_and_shrink": grow_and_shrink,
    "filled_by_others": filled_by_others,
    "write_protected": write_protected,
}


def main(scenario: str, place: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "vfsd-test", place], check=True)
    trio.run(SCENARIOS[scenario], SqlitePlace(Path(place) / "scopes.db"))


if __name__ == "__main__":
    main(*sys.argv[1:])
