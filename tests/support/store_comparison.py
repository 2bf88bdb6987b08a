"""Compare a mount with the records in its store: trees, contents and times, to the nanosecond."""

import os

import trio

from tests.support.mounted import Mounted
from tests.support.servers import RedisServer
from tests.support.trees import Facts, Found, Stamp, differences, look_at
from vfsd.scope.hydrate import hydrate
from vfsd.store.base import StoreOptions
from vfsd.store.url import open_store
from vfsd.tree.change import CHUNK_SIZE, ROOT
from vfsd.tree.inode import Inode
from vfsd.tree.tree import Tree


def assert_store_matches(mounted: Mounted, url: str | None = None) -> Found:
    """Raise AssertionError if the mount and the records of its scope differ. Return the stored tree.

    Read the store at *url* if the URL of the mount does not work at the moment.
    """
    records = stored_tree(url or mounted.store, mounted.scope)
    shown = look_at(os.fsencode(mounted.path))
    assert differences(records.facts, shown.facts) == []
    assert shown.stamps == records.stamps
    return records


def stored_tree(url: str, scope: str) -> Found:
    """Return the tree that the records of *scope* describe."""
    tree = trio.run(_hydrated, url, scope)
    paths = dict(_paths(tree, b"", tree.inodes[ROOT]))
    facts: dict[bytes, Facts] = {}
    first: dict[int, bytes] = {}
    for path in sorted(paths):
        inode = paths[path]
        facts[path] = _facts(inode, first.setdefault(inode.ino, path))
    stamps = {
        path: Stamp(inode.ino, inode.attributes.mtime_ns, inode.attributes.ctime_ns) for path, inode in paths.items()
    }
    return Found(facts, stamps)


async def _hydrated(url: str, scope: str) -> Tree:
    store = open_store(url, StoreOptions())
    try:
        return await hydrate(store, scope, lambda _done, _total: None)
    finally:
        await store.aclose()


def _paths(tree: Tree, path: bytes, inode: Inode) -> list[tuple[bytes, Inode]]:
    found = [(path, inode)]
    if inode.directory is not None:
        for name, entry in inode.directory.entries.items():
            found += _paths(tree, os.path.join(path, name), tree.inodes[entry.ino])
    return found


def _facts(inode: Inode, same_as: bytes) -> Facts:
    mode, nlink, uid, gid, rdev = inode.attributes[:5]
    xattrs = tuple(sorted(inode.attributes.xattrs))
    return Facts(mode, uid, gid, rdev, nlink, _content(inode), inode.attributes.target, xattrs, same_as)


def _content(inode: Inode) -> bytes:
    content = bytearray(inode.attributes.size if inode.attributes.is_regular else 0)
    for number, chunk in inode.chunks.items():
        content[number * CHUNK_SIZE : number * CHUNK_SIZE + len(chunk)] = chunk
    return bytes(content)


def commit_count(server: RedisServer, scope: str) -> int:
    """Return how many commits of *scope* the store contains."""
    with server.client() as client:
        return int(client.hget(f"vfsd:{{{scope}}}:scope", "seq") or 0)
