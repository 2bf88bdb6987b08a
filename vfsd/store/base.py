"""The contract of a store: what a store must do, and what it must not do.

A store keeps the *operations* of :mod:`vfsd.tree.change` durable. It does not interpret a tree and does not cache for
readers. It answers a commit only when the change survives the death of this process (``memory:`` is the exception, and
warns). One test suite (tests/store) runs over every store. This module is a public, stable interface.

A daemon calls ``check``, ``claim`` and ``load``. Then it runs ``Claim.keep`` in one task and ``Claim.commit`` in any
number of other tasks. It ends with ``Claim.release`` and ``aclose``. A read-only mount needs only ``check`` and
``load``.
"""

import abc
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, TypeAlias

from vfsd.errors import ScopeBusy, ScopeMissing
from vfsd.store.owner import Owner
from vfsd.tree.change import Change, Limits, Op, PutChunks, PutEntry, PutInode

Record: TypeAlias = PutInode | PutEntry | PutChunks
"""What a store holds of a scope besides its header, as the operation that puts it."""

LEASE_SECONDS = 15
"""How long (s) an owner counts as alive after it last renewed its lease. The lease only says whether an owner is alive;
the epoch makes writing safe."""


class Fsync(NamedTuple):
    """What :manpage:`fsync(2)` waits for beyond the acknowledgement that every change already has.

    *replicas* is how many replicas must confirm. *aof* says that the server's own disk must confirm too.
    """

    replicas: int = 0
    aof: bool = False


class StoreOptions(NamedTuple):
    """What the operator decides about any store.

    *timeout* is the longest time (s) that a commit may take. *allow_eviction* accepts a server that may drop data
    under memory pressure. *fsync* is what fsync waits for, if the store offers a choice.
    """

    timeout: float = 5.0
    allow_eviction: bool = False
    fsync: Fsync = Fsync()


class ClaimTerms(NamedTuple):
    """The conditions of a claim.

    *create* makes a missing scope. *take_over* claims it even from a living owner. *limits* are the limits to change;
    a limit that is None stays as the scope has it.
    """

    create: bool = True
    take_over: bool = False
    limits: Limits = Limits()


class Claimed(NamedTuple):
    """What was claimed: *scope*, by *owner*. *limits* are the limits in force; *created* says that the scope is new."""

    scope: str
    owner: Owner
    limits: Limits = Limits()
    created: bool = False


class Claim(abc.ABC):
    """The right to write what was *claimed*, until another owner claims it.

    All methods raise :class:`~vfsd.errors.StoreError`. After another owner has claimed the scope, that is
    :class:`~vfsd.errors.Fenced` for good.
    """

    def __init__(self, claimed: Claimed) -> None:
        self.scope, self.owner, self.limits, self.created = claimed

    @property
    @abc.abstractmethod
    def pending(self) -> int:
        """How many commits wait for the store at this moment."""

    @abc.abstractmethod
    async def keep(self) -> None:
        """Keep the claim alive and the connection usable, until cancelled. Run it in its own task.

        It returns only when the claim is lost for good. Commits then raise Fenced.
        """

    @abc.abstractmethod
    async def release(self) -> None:
        """Give the scope up, so that the next claim need not wait. It does nothing if the claim is lost already."""

    async def undo(self) -> None:
        """Give up a scope that this claim has created and that no mount has shown: it leaves nothing behind.

        It does nothing if the claim is lost already. A store that cannot remove a scope in one step releases it.
        """
        await self.release()

    @abc.abstractmethod
    def raise_if_unusable(self) -> None:
        """Raise at once what a commit would raise, if that is known: the claim is lost, or the store is away."""

    @abc.abstractmethod
    async def commit(self, change: Change) -> None:
        """Make *change* durable, all of it or nothing. Changes that are committed at the same time are independent.

        Raises StoreFull, StoreReadOnly, Fenced, StoreRefused or StoreUnreachable: then nothing is stored. Raises
        InDoubt if the change may or may not be stored.
        """

    @abc.abstractmethod
    async def sync(self) -> None:
        """Do what :manpage:`fsync(2)` promises beyond a commit, as far as this store can."""


class Damage(NamedTuple):
    """A record that cannot be understood: the *key* that the store holds it under, and *why*."""

    key: str
    why: str


class Batch(NamedTuple):
    """A slice of a scope, yielded while the scope is loaded.

    Every record is within its range (:mod:`vfsd.store.ranges`), or it is among the *damages*. Inodes come before the
    entries and chunks that refer to them. A record may come twice, because a scan of a growing
    hash repeats some. *done* and *total* count records, for progress. *next_ino* is the next inode number that was
    never used, as far as the store knows.
    """

    ops: tuple[Op, ...]
    damages: tuple[Damage, ...]
    done: int
    total: int
    next_ino: int


class Capacity(NamedTuple):
    """Room in the store, in bytes: *total*, and *free* of it."""

    total: int
    free: int


class ScopeSummary(NamedTuple):
    """One scope of a store: its name, its creation time (ns), and the *owner*, None if no living one is known.

    *files* is the number of files of all kinds, without the root directory. *bytes* are the sizes of its regular files
    together, and *changed_ns* is its last change; None if the store does not tell.
    *damage* is what is wrong with its header, if anything is. The other fields are then what could be read.
    """

    name: str
    files: int
    created_ns: int
    owner: Owner | None
    damage: Damage | None = None
    bytes: int | None = None
    changed_ns: int | None = None


class Store(abc.ABC):
    """A place that keeps scopes. All methods raise :class:`~vfsd.errors.StoreError`."""

    label: str
    """The store's URL as people may see it, without a password."""

    @abc.abstractmethod
    async def check(self) -> list[str]:
        """Connect, refuse an unfit store (StoreUnreachable, StoreRefused), and return warnings, a line each."""

    @abc.abstractmethod
    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """Make *owner* the only one who may write *scope*. Every earlier owner is fenced from here on.

        Raises ScopeBusy (a living owner, and no take-over), ScopeMissing, FormatTooNew, StoreUnreachable.
        """

    @abc.abstractmethod
    def load(self, scope: str) -> AsyncIterator[Batch]:
        """Yield everything that is stored of *scope*, as it was at one moment.

        Raises ScopeMissing, FormatTooNew, ScopeDamaged (the header cannot be read), StoreUnreachable.
        """

    def key_of(self, scope: str, record: Record) -> str:
        """Return under which key this store holds *record* of *scope*, as people may see it: for the error about it."""
        match record:
            case PutInode():
                return f"inode {record.ino}"
            case PutEntry():
                return f"entry {record.parent}/{record.name!r}"
            case PutChunks():
                return f"chunk {min(record.chunks)} of inode {record.ino}"

    @abc.abstractmethod
    async def capacity(self) -> Capacity:
        """Return how much the store can hold. For ``statfs``: called now and then, never by a reader."""

    @abc.abstractmethod
    async def scopes(self) -> list[ScopeSummary]:
        """Return all scopes, sorted by name. One that is damaged says so, and does not hide the others.

        Raises StoreUnreachable if there is no store yet: only a claim makes one.
        """

    async def droppable(self, scope: str) -> ScopeSummary:
        """Return the summary of *scope* if :meth:`drop` would destroy it now. Raises what that would raise."""
        found = next((summary for summary in await self.scopes() if summary.name == scope), None)
        if found is None:
            raise ScopeMissing(f"there is no scope {scope} in {self.label}")
        if found.owner is not None and not found.owner.is_gone():
            raise ScopeBusy(f"scope {scope} is mounted: {found.owner.describe()}; unmount it there")
        return found

    @abc.abstractmethod
    async def drop(self, scope: str) -> None:
        """Destroy everything that is stored of *scope*; a frozen owner is fenced. Raises ScopeMissing, ScopeBusy."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close every connection. It releases no claim."""


StoreFactory: TypeAlias = Callable[[str, StoreOptions], Store]
"""What a package offers in the entry-point group ``vfsd.stores``, under the URL scheme that it serves."""
