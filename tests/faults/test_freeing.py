"""Freeing much removed content: in slices, so that other requests go on between them."""

import trio
import trio.testing

from vfsd.daemon.freed_memory import FreedMemory
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.tree.change import CHUNK_SIZE, ROOT, Attributes, Change, DropChunks, DropInode, PutChunks, PutInode
from vfsd.tree.tree import Tree

FILE, MANY, FEW = 2, 40_000, 200
ATTRIBUTES = Attributes(0o100644, 1, 0, 0, 0, MANY * CHUNK_SIZE, 0, 0, 0)
"""40,000 chunks are enough for several returns of memory to the system."""


def _tree_with_file(chunks: int) -> Tree:
    tree = Tree()
    tree.replay([PutInode(ROOT, ATTRIBUTES._replace(mode=0o40755, size=0)), PutInode(FILE, ATTRIBUTES)])
    tree.replay([PutChunks(FILE, {number: b"%d" % number for number in range(chunks)})])
    return tree


def test_a_tree_hands_over_many_chunks_and_frees_few() -> None:
    half = tuple(range(MANY // 2))
    for ops, expected in (
        ((DropInode(FILE, ATTRIBUTES._replace(nlink=0)),), [MANY]),
        ((DropChunks(FILE, None),), [MANY]),
        ((DropChunks(FILE, half),), [MANY // 2]),
        ((DropChunks(FILE, (1, 2)),), []),
    ):
        tree = _tree_with_file(MANY)
        handed_over: list[int] = []
        tree.discard = lambda removed, found=handed_over: found.append(len(removed))  # type: ignore[misc]  # a default binds it
        tree.apply(Change(ops, grows=False))
        assert handed_over == expected
        left = {} if FILE not in tree.inodes else tree.inodes[FILE].chunks
        assert tree.content_bytes == sum(map(len, left.values()))


async def test_other_tasks_run_while_much_content_is_freed() -> None:
    tree = _tree_with_file(MANY)
    freed = FreedMemory(MemoryLimit(0), tree)
    removed = tree.inodes[FILE].chunks
    async with trio.open_nursery() as nursery:
        nursery.start_soon(freed.keep_freeing)
        await trio.testing.wait_all_tasks_blocked()
        tree.apply(Change((DropInode(FILE, ATTRIBUTES._replace(nlink=0)),), grows=False))
        assert tree.content_bytes == 0
        seen = {len(removed)}
        while removed:
            await trio.lowlevel.checkpoint()
            seen.add(len(removed))
        nursery.cancel_scope.cancel()
    assert len(seen) > MANY // 2_000
