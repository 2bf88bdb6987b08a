"""Names of the keys a scope has in Redis. All but the set of scopes share one hash tag, so one cluster slot."""

SCOPES = b"vfsd:scopes"
"""SET: the names of all scopes."""


class Keys:
    """The keys of one scope; docs/format.md says what is in them."""

    def __init__(self, scope: str) -> None:
        prefix = b"vfsd:{%b}:" % scope.encode()
        self.scope = prefix + b"scope"
        self.inodes = prefix + b"inodes"
        self.entries = prefix + b"entries"
        self.lease = prefix + b"lease"
        self.data = (prefix + b"data:%d").__mod__
        """Returns the key of the hash that holds the chunks of an inode, by its number. It is a bound method of bytes:
        every commit of content asks, and a scope's name holds no percent sign."""
