"""What the inodes of a scope add up to: the number of files, their sizes, and the last change.

A store keeps none of these numbers, because each commit would have to store them again. So a listing reads the inode
records, and nothing else: no entries and no content. 100,000 files in Redis take half a second.
"""

from collections.abc import Iterable
from typing import NamedTuple

from vfsd.store.records import unpack_inode
from vfsd.tree.change import ROOT


class Tally(NamedTuple):
    """How many *files* of all kinds there are besides the root directory, and the sizes of the regular ones in *bytes*.

    *changed_ns* is the latest change of any inode, the root too; None if there is no inode. A hole counts as a part of
    its file.
    """

    files: int
    bytes: int
    changed_ns: int | None


def tally(inodes: Iterable[tuple[int | bytes, bytes]]) -> Tally:
    """Return what *inodes* add up to: their numbers (or these in decimal), and their records.

    An inode may come twice, because a scan of a growing hash repeats some. A record that cannot be read is a file of
    unknown size.
    """
    sizes: dict[int | bytes, int] = {}
    changed_ns = None
    for ino, record in inodes:
        sizes[ino] = 0
        try:
            attributes = unpack_inode(record)
        except ValueError:
            continue
        if attributes.is_regular:
            sizes[ino] = attributes.size
        if changed_ns is None or attributes.ctime_ns > changed_ns:
            changed_ns = attributes.ctime_ns
    root = {ROOT, b"%d" % ROOT} & sizes.keys()
    return Tally(len(sizes) - len(root), sum(sizes.values()), changed_ns)
