"""The row that stands for a scope as a whole: who holds it, in which epoch, and what it must not forget.

All here is synchronous and within a transaction of the caller's.
"""

import sqlite3
from typing import NamedTuple

from vfsd import clock
from vfsd.errors import ScopeBusy
from vfsd.store import owner as owners
from vfsd.store.base import LEASE_SECONDS, ScopeSummary
from vfsd.store.owner import Owner
from vfsd.store.records import FORMAT, pack_limits, unpack_limits
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, Limits, PutInode

_LEASE_NS = LEASE_SECONDS * 1_000_000_000


class ScopeRow(NamedTuple):
    """A row of the table ``scopes``. *lease_ns* is when the owner counts as dead; 0 means that it has released."""

    id: int
    name: str
    format: int
    chunk_size: int
    created_ns: int
    next_ino: int
    epoch: int
    owner: str
    lease_ns: int
    limits: str

    def last_owner(self) -> Owner:
        """Return who has claimed the scope last, dead or alive. Raises ScopeDamaged."""
        return owners.from_json(self.owner)

    def holder(self) -> Owner | None:
        """Return the owner, if it may be alive. A lease that ends too late means that the clock was set back."""
        if not 0 < self.lease_ns - clock.now() <= _LEASE_NS:
            return None
        owner = self.last_owner()
        return None if owner.is_gone() else owner

    def raise_if_held(self) -> None:
        """Raise ScopeBusy if the owner may be alive."""
        holder = self.holder()
        if holder is not None:
            raise ScopeBusy(
                f"scope {self.name} is mounted: {holder.describe()};"
                f" unmount it there, or wait up to {LEASE_SECONDS} s if that daemon has died"
            )


class Grant(NamedTuple):
    """What a claim holds: the number of the scope, and the epoch in which it may be written."""

    scope: int
    epoch: int


def update_limits(connection: sqlite3.Connection, grant: Grant, given: Limits) -> Limits:
    """Change the limits of a scope as *given*, and return those in force."""
    (present,) = connection.execute("SELECT limits FROM scopes WHERE id = ?", (grant.scope,)).fetchone()
    limits = unpack_limits(present).changed_by(given)
    connection.execute("UPDATE scopes SET limits = ? WHERE id = ?", (pack_limits(limits), grant.scope))
    return limits


def find(connection: sqlite3.Connection, name: str) -> ScopeRow | None:
    """Return the head of the scope called *name*."""
    row = connection.execute("SELECT * FROM scopes WHERE name = ?", (name,)).fetchone()
    return None if row is None else ScopeRow._make(row)


def create(connection: sqlite3.Connection, name: str, owner: Owner) -> Grant:
    """Add a scope, claimed by *owner*."""
    number = connection.execute(
        "INSERT INTO scopes (name, format, chunk_size, created_ns, next_ino, epoch, owner, lease_ns, limits)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, ?, '{}')",
        (name, FORMAT, CHUNK_SIZE, clock.now(), ROOT + 1, owner.to_json(), clock.now() + _LEASE_NS),
    ).lastrowid
    assert number is not None, "an INSERT has a row"
    return Grant(number, 1)


def change_owner(connection: sqlite3.Connection, head: ScopeRow, owner: Owner) -> Grant:
    """Give the scope to *owner*, in a new epoch."""
    grant = Grant(head.id, head.epoch + 1)
    connection.execute(
        "UPDATE scopes SET epoch = ?, owner = ?, lease_ns = ? WHERE id = ?",
        (grant.epoch, owner.to_json(), clock.now() + _LEASE_NS, head.id),
    )
    return grant


def renew(connection: sqlite3.Connection, grant: Grant) -> bool:
    """Put the end of the lease off; return whether it is still ours."""
    return _set_lease(connection, grant, clock.now() + _LEASE_NS)


def release(connection: sqlite3.Connection, grant: Grant) -> None:
    """End the lease, if it is still ours."""
    _set_lease(connection, grant, 0)


def _set_lease(connection: sqlite3.Connection, grant: Grant, lease_ns: int) -> bool:
    changed = connection.execute(
        "UPDATE scopes SET lease_ns = ? WHERE id = ? AND epoch = ?", (lease_ns, grant.scope, grant.epoch)
    )
    return changed.rowcount == 1


def next_ino(connection: sqlite3.Connection, grant: Grant) -> int | None:
    """Return the next inode number never used, or None if the grant is no longer valid."""
    row = connection.execute(
        "SELECT next_ino FROM scopes WHERE id = ? AND epoch = ?", (grant.scope, grant.epoch)
    ).fetchone()
    return None if row is None else row[0]


def raise_next_ino(connection: sqlite3.Connection, grant: Grant, present: int, change: Change) -> None:
    """Remember the highest inode number there ever was, so that it is never given out again."""
    highest = max((op.ino for op in change.ops if isinstance(op, PutInode)), default=0)
    if highest >= present:
        connection.execute("UPDATE scopes SET next_ino = ? WHERE id = ?", (highest + 1, grant.scope))


def summaries(connection: sqlite3.Connection) -> list[ScopeSummary]:
    """Return all scopes, by name."""
    heads = map(ScopeRow._make, connection.execute("SELECT * FROM scopes ORDER BY name").fetchall())
    files = dict(connection.execute("SELECT scope, COUNT(*) FROM inodes GROUP BY scope"))
    return [ScopeSummary(head.name, files.get(head.id, 0), head.created_ns, head.holder()) for head in heads]
