"""The contract between a mounted scope and whatever keeps it: what every store must do, and may not.

A store keeps the *operations* of :mod:`vfsd.tree.change` durable. It never interprets a tree, never caches for
readers, and never answers a commit before the change would survive the death of this process. One test suite
(tests/store) runs over every implementation; this page is public and stable.

The life of a claimed scope: ``check`` → ``claim`` → ``load`` → ``keep`` beside any number of ``commit`` →
``release`` → ``aclose``. A read-only mount uses ``check`` and ``load`` alone.
"""

import abc
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, TypeAlias

from vfsd.store.owner import Owner
from vfsd.tree.change import Change, Limits, Op

LEASE_SECONDS = 15
"""How long a claim counts as alive after its owner was last heard of. Tells the living from the dead, no more:
what makes writing safe is the epoch."""


class Fsync(NamedTuple):
    """What :manpage:`fsync(2)` waits for beyond the acknowledgement that every change already has.

    *replicas* that must confirm, and whether the server's own disk must (*aof*). Neither: nothing more.
    """

    replicas: int = 0
    aof: bool = False


class StoreOptions(NamedTuple):
    """What the operator decides about any store.

    *timeout* is the longest a commit may take, in seconds. *allow_eviction* accepts a server that may drop data
    under memory pressure. *fsync* is what fsync waits for, where a store offers a choice.
    """

    timeout: float = 5.0
    allow_eviction: bool = False
    fsync: Fsync = Fsync()


class ClaimTerms(NamedTuple):
    """On what terms a scope is claimed.

    Whether to *create* a missing one, to *take_over* a living owner's, and which *limits* to change: those that are
    None stay as the scope has them.
    """

    create: bool = True
    take_over: bool = False
    limits: Limits = Limits()


class Claim(NamedTuple):
    """The right to write one scope, until someone else claims it.

    *created* says that the scope is new; *limits* are those in force, as the scope's header has them.
    """

    scope: str
    owner: Owner
    created: bool
    limits: Limits = Limits()


class Damage(NamedTuple):
    """A record that cannot be understood: the *key* under which the store holds it, and *why*."""

    key: str
    why: str


class Batch(NamedTuple):
    """A slice of a scope while it is loaded.

    Inodes come before the entries and chunks that mean them; a record may come twice, as a scan of a hash that is
    growing repeats some. *done* and *total* count records, for progress;
    *next_ino* is the next inode number never used, so far as the store knows.
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
    """One scope of a store: its name, number of files of all kinds, when it was made (ns), and who holds it."""

    name: str
    files: int
    created_ns: int
    owner: Owner | None


class Store(abc.ABC):
    """A place that keeps scopes. All methods raise :class:`~vfsd.errors.StoreError` for what goes wrong."""

    label: str
    """The store's URL as people may see it: no password."""

    @abc.abstractmethod
    async def check(self) -> list[str]:
        """Connect, refuse an unfit store (StoreUnreachable, StoreRefused), and return warnings, a line each."""

    @abc.abstractmethod
    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """Make *owner* the only one who may write *scope*; every earlier owner is fenced from here on.

        Raises ScopeBusy (a living owner, and no take-over), ScopeMissing, FormatTooNew, StoreUnreachable.
        """

    @abc.abstractmethod
    async def keep(self, claim: Claim) -> None:
        """Keep *claim* alive and the connection usable, until cancelled. Runs beside the commits.

        It returns only when the claim is lost for good; commits then raise Fenced.
        """

    @abc.abstractmethod
    async def release(self, claim: Claim) -> None:
        """Give the scope up, so that the next claim need not wait. Harmless when the claim is already lost."""

    @abc.abstractmethod
    def load(self, scope: str) -> AsyncIterator[Batch]:
        """Yield all that is stored of *scope*, as one moment left it.

        Raises ScopeMissing, FormatTooNew, ScopeDamaged (a header that cannot be read), StoreUnreachable.
        """

    @abc.abstractmethod
    def raise_if_unusable(self, claim: Claim) -> None:
        """Raise at once what a commit would raise before long, if that is known: the claim lost, the store away."""

    @abc.abstractmethod
    async def commit(self, claim: Claim, change: Change) -> None:
        """Make *change* durable, all of it or nothing; changes that are committed side by side are independent.

        Raises StoreFull, StoreReadOnly, Fenced, StoreRefused, StoreUnreachable: nothing is stored then; and
        InDoubt, the one error after which it may be.
        """

    @abc.abstractmethod
    async def sync(self) -> None:
        """Do what :manpage:`fsync(2)` promises beyond a commit, as far as this store can."""

    @abc.abstractmethod
    async def capacity(self) -> Capacity:
        """Return how much the store can hold. For ``statfs``; asked now and then, never by a reader."""

    @abc.abstractmethod
    async def scopes(self) -> list[ScopeSummary]:
        """Return all scopes, by name."""

    @abc.abstractmethod
    async def drop(self, scope: str) -> None:
        """Destroy all that is stored of *scope*; a frozen owner is fenced. Raises ScopeMissing, ScopeBusy."""

    @abc.abstractmethod
    async def aclose(self) -> None:
        """Close what is open. Releases nothing."""

    @property
    @abc.abstractmethod
    def pending(self) -> int:
        """How many commits are waiting for the store at this moment."""


StoreFactory: TypeAlias = Callable[[str, StoreOptions], Store]
"""What a plug-in offers under ``vfsd.stores``, named after the URL scheme it serves."""
