"""The row of a scope in the table ``scopes``: its owner, epoch, lease, limits and next inode number.

All functions are synchronous and run in the caller's transaction.
"""

import sqlite3
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from vfsd import clock
from vfsd.errors import ScopeBusy, ScopeDamaged
from vfsd.store import owner as owners
from vfsd.store.base import LEASE_SECONDS, Damage, ScopeSummary
from vfsd.store.owner import Owner
from vfsd.store.ranges import check_header_number, is_scope_name
from vfsd.store.records import FORMAT, pack_limits, unpack_limits
from vfsd.store.tally import tally
from vfsd.tree.change import CHUNK_SIZE, ROOT, Change, Limits, PutInode

_LEASE_NS = LEASE_SECONDS * 1_000_000_000


class ScopeRow(NamedTuple):
    """A row of the table ``scopes``. *lease_ns* is the end of the lease (ns, wall clock); 0 means a released scope."""

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

    def damages(self) -> list[Damage]:
        """Return the fields that are not within their ranges, except the owner."""
        checks: dict[str, Callable[[], object]] = {
            "created": partial(check_header_number, "created", self.created_ns),
            "epoch": partial(check_header_number, "epoch", self.epoch),
            "next": partial(check_header_number, "next", self.next_ino),
            "limits": partial(unpack_limits, self.limits),
        }
        found = []
        for field, check in checks.items():
            try:
                check()
            except ValueError as error:
                found.append(Damage(f"scopes {self.name} {field}", str(error)))
        return found

    def raise_if_damaged(self) -> None:
        """Raise ScopeDamaged if a field that a claim needs is not within its range."""
        for damage in self.damages():
            raise ScopeDamaged(
                f"the header of scope {self.name} is not readable ({damage.key}: {damage.why}); finish with"
                f" 'vfsd destroy {self.name}', restore it from a backup, or mount with --salvage to read what is left"
            )

    def holder(self) -> Owner | None:
        """Return the owner if it may be alive, otherwise None.

        An owner on this host is asked for first, because a step of the clock ends every lease. The lease decides only
        about an owner elsewhere. If it ends later than a new lease would, the clock was set back: it does not count.
        """
        if not self.lease_ns:
            return None
        if not 0 < self.lease_ns - clock.now() <= _LEASE_NS:
            return owners.living_here(self.owner)
        owner = owners.from_json(self.owner, f"scopes {self.name} owner: ")
        return None if owner.is_gone() else owner

    def raise_if_held(self, *, last_resort: str = "") -> None:
        """Raise ScopeBusy if the owner may be alive. *last_resort* ends the message."""
        holder = self.holder()
        if holder is not None:
            raise ScopeBusy(
                f"scope {self.name} is mounted: {holder.describe()};"
                f" unmount it there, or wait up to {LEASE_SECONDS} s if that daemon has died{last_resort}"
            )


class Grant(NamedTuple):
    """The right of a claim: the number of the scope, and the epoch in which the claim may write."""

    scope: int
    epoch: int


def update_limits(connection: sqlite3.Connection, grant: Grant, changes: Limits) -> Limits:
    """Change the limits of a scope, and return the limits in force. A limit that is None in *changes* stays."""
    (present,) = connection.execute("SELECT limits FROM scopes WHERE id = ?", (grant.scope,)).fetchone()
    limits = unpack_limits(present).changed_by(changes)
    connection.execute("UPDATE scopes SET limits = ? WHERE id = ?", (pack_limits(limits), grant.scope))
    return limits


def find(connection: sqlite3.Connection, name: str) -> ScopeRow | None:
    """Return the row of the scope *name*, or None."""
    row = connection.execute("SELECT * FROM scopes WHERE name = ?", (name,)).fetchone()
    return None if row is None else ScopeRow._make(row)


def create(connection: sqlite3.Connection, name: str, owner: Owner) -> Grant:
    """Add a scope, claimed by *owner*, and return its grant."""
    number = connection.execute(
        "INSERT INTO scopes (name, format, chunk_size, created_ns, next_ino, epoch, owner, lease_ns, limits)"
        " VALUES (?, ?, ?, ?, ?, 1, ?, ?, '{}')",
        (name, FORMAT, CHUNK_SIZE, clock.now(), ROOT + 1, owner.to_json(), clock.now() + _LEASE_NS),
    ).lastrowid
    assert number is not None, "an INSERT has a row"
    return Grant(number, 1)


def change_owner(connection: sqlite3.Connection, row: ScopeRow, owner: Owner) -> Grant:
    """Make *owner* the owner of the scope, in a new epoch, and return its grant."""
    grant = Grant(row.id, row.epoch + 1)
    connection.execute(
        "UPDATE scopes SET epoch = ?, owner = ?, lease_ns = ? WHERE id = ?",
        (grant.epoch, owner.to_json(), clock.now() + _LEASE_NS, row.id),
    )
    return grant


def renew(connection: sqlite3.Connection, grant: Grant) -> bool:
    """Extend the lease. Return whether that was possible: the grant is still valid, and was not released."""
    return _set_lease(connection, grant, clock.now() + _LEASE_NS)


def release(connection: sqlite3.Connection, grant: Grant) -> None:
    """End the lease, if the grant is still valid."""
    _set_lease(connection, grant, 0)


def is_held(connection: sqlite3.Connection, grant: Grant) -> bool:
    """Return whether the grant is still valid, and was not released."""
    held = "SELECT 1 FROM scopes WHERE id = ? AND epoch = ? AND lease_ns <> 0"
    return connection.execute(held, grant).fetchone() is not None


def _set_lease(connection: sqlite3.Connection, grant: Grant, lease_ns: int) -> bool:
    changed = connection.execute(
        "UPDATE scopes SET lease_ns = ? WHERE id = ? AND epoch = ? AND lease_ns <> 0",
        (lease_ns, grant.scope, grant.epoch),
    )
    return changed.rowcount == 1


def next_ino(connection: sqlite3.Connection, grant: Grant) -> int | None:
    """Return the next inode number that was never used, or None if the grant is no longer valid."""
    row = connection.execute(
        "SELECT next_ino FROM scopes WHERE id = ? AND epoch = ?", (grant.scope, grant.epoch)
    ).fetchone()
    return None if row is None else row[0]


def raise_next_ino(connection: sqlite3.Connection, grant: Grant, present: int, change: Change) -> None:
    """Raise the next inode number above those in *change*, so that no number is ever used twice.

    *present* is the stored next number.
    """
    highest = max((op.ino for op in change.ops if isinstance(op, PutInode)), default=0)
    if highest >= present:
        connection.execute("UPDATE scopes SET next_ino = ? WHERE id = ?", (highest + 1, grant.scope))


def summaries(connection: sqlite3.Connection) -> list[ScopeSummary]:
    """Return the summaries of all scopes, sorted by name."""
    rows = map(ScopeRow._make, connection.execute("SELECT * FROM scopes ORDER BY name").fetchall())
    return [summary(connection, row) for row in rows]


def summary(connection: sqlite3.Connection, row: ScopeRow) -> ScopeSummary:
    """Return the summary of the scope of *row*."""
    found = tally(connection.execute("SELECT ino, record FROM inodes WHERE scope = ?", (row.id,)))
    damages, holder = row.damages(), None
    if not is_scope_name(row.name.encode(errors="replace")):
        damages.append(Damage(f"scopes {row.name}", "this is not the name of a scope"))
    try:
        holder = row.holder()
    except ScopeDamaged as error:
        damages.append(Damage(f"scopes {row.name} owner", str(error)))
    damage, created_ns = next(iter(damages), None), max(0, row.created_ns)
    return ScopeSummary(row.name, found.files, created_ns, holder, damage, found.bytes, found.changed_ns)
