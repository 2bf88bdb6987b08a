"""The names of a scope's keys in Redis, and where in them a record is.

All keys of a scope have the same hash tag, so they are in one cluster slot. The set of all scopes has no hash tag.
"""

from vfsd.store.base import Record
from vfsd.store.records import entry_key
from vfsd.tree.change import PutChunks, PutEntry, PutInode

SCOPES = b"vfsd:scopes"
"""SET: the names of all scopes."""


class Keys:
    """The keys of one scope. docs/format.md describes their content."""

    def __init__(self, scope: str) -> None:
        prefix = b"vfsd:{%b}:" % scope.encode()
        self.scope = prefix + b"scope"
        self.inodes = prefix + b"inodes"
        self.entries = prefix + b"entries"
        self.lease = prefix + b"lease"
        self.leftovers = prefix + b"leftovers"
        self.data_prefix = prefix + b"data:"
        self.data = (self.data_prefix + b"%d").__mod__
        """``data(ino)`` is the key of the hash that holds the chunks of inode *ino*. Every commit of content calls it,
        so it is the ``%`` operator of bytes itself, without a Python function around it. That is safe, because the name
        of a scope has no percent sign."""

    def place_of(self, record: Record) -> str:
        """Return the key and the field of *record*, as people may see them."""
        match record:
            case PutInode():
                return place(self.inodes, b"%d" % record.ino)
            case PutEntry():
                return place(self.entries, entry_key(record.parent, record.name))
            case PutChunks():
                return place(self.data(record.ino), b"%d" % min(record.chunks))


def place(key: bytes, field: bytes) -> str:
    """Return *field* of the hash at *key*, as people may see it."""
    return f"{key.decode()} field {field!r}"
