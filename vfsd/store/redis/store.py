"""The store contract over Redis or Valkey: claims and listings by redis-py in worker threads, data by the session."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

import trio

from vfsd import clock
from vfsd.errors import ScopeBusy, ScopeMissing, StoreError
from vfsd.store.base import (
    LEASE_SECONDS,
    Batch,
    Capacity,
    Claim,
    ClaimTerms,
    Fsync,
    ScopeSummary,
    Store,
    StoreOptions,
)
from vfsd.store.owner import Owner, from_json
from vfsd.store.records import FORMAT, pack_limits, unpack_limits
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.committer import Committer
from vfsd.store.redis.durability import DurabilityWait
from vfsd.store.redis.keys import SCOPES, Keys
from vfsd.store.redis.load import Loader
from vfsd.store.redis.resp import RespConnection
from vfsd.tree.change import CHUNK_SIZE, Change, Limits

T = TypeVar("T")

_UNLINKED_AT_ONCE = 500


class RedisStore(Store):
    """Scopes on one server. One claim at a time: a daemon serves one scope."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self._server = RedisAdmin(url, options.timeout)
        self._options = options
        self._session: Committer | None = None
        self._confirmations: DurabilityWait | None = None
        self.label = self._server.label

    @property
    def pending(self) -> int:
        """How many commits wait for the server."""
        return 0 if self._session is None else self._session.pending

    async def check(self) -> list[str]:
        """See :meth:`Store.check`."""
        eviction = self._options.allow_eviction
        return await _in_thread(lambda: self._server.preflight(self._options.fsync, allow_eviction=eviction))

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """See :meth:`Store.claim`."""
        if not await _in_thread(lambda: self._is_new(scope)):
            await self._check_header(scope)
        created = await _in_thread(lambda: self._claim(scope, owner, terms))
        limits = await _in_thread(lambda: self._set_limits(scope, terms.limits))
        claim = Claim(scope, owner, created, limits)
        if self._session is not None:
            self._session.line.close()
        self._session = Committer(self._server, claim, self._options.timeout)
        await self._session.line.bring_up()
        if self._options.fsync != Fsync():
            self._confirmations = DurabilityWait(
                self._server, self._session.line, self._options.fsync, self._options.timeout
            )
        return claim

    def _is_new(self, scope: str) -> bool:
        return not self._server.execute("EXISTS", Keys(scope).scope)

    async def _check_header(self, scope: str) -> None:
        link = await self._link()
        try:
            await self._loader(link, scope).header()
        finally:
            link.close()

    def _claim(self, scope: str, owner: Owner, terms: ClaimTerms, known_gone: bytes = b"") -> bool:
        """Claim *scope*; return whether that made it. *known_gone* is the epoch of an owner that has ended."""
        keys = Keys(scope)
        if terms.create and not self._server.execute("SISMEMBER", SCOPES, scope):  # a full server takes no SADD at all
            self._server.execute("SADD", SCOPES, scope)
        answer = self._server.script(
            scripts.CLAIM,
            (keys.scope, keys.lease),
            owner.to_json(),
            owner.token,
            LEASE_SECONDS * 1000,
            known_gone,
            int(terms.create),
            int(terms.take_over),
            FORMAT,
            CHUNK_SIZE,
            clock.now(),
        )
        if answer[0] == b"missing":
            raise ScopeMissing(f"there is no scope {scope} in the store {self.label}")
        if answer[0] == b"busy":
            _check_gone(scope, answer[2])
            return self._claim(scope, owner, terms, answer[1])
        return bool(answer[2] == b"1")

    def _set_limits(self, scope: str, given: Limits) -> Limits:
        """Change the limits of a scope that has just been claimed, and return those in force."""
        header = Keys(scope).scope
        present = unpack_limits(self._server.execute("HGET", header, "limits") or "{}")
        limits = present.changed_by(given)
        if limits != present:
            self._server.execute("HSET", header, "limits", pack_limits(limits))
        return limits

    async def keep(self, claim: Claim) -> None:
        """See :meth:`Store.keep`."""
        await self._claimed().line.keep()

    async def release(self, claim: Claim) -> None:
        """See :meth:`Store.release`."""
        keys, token = Keys(claim.scope), claim.owner.token
        await _in_thread(lambda: self._server.script(scripts.RELEASE, (keys.scope, keys.lease), token))

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        """See :meth:`Store.load`."""
        link = await self._link()
        try:
            async with aclosing(self._loader(link, scope).batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            link.close()

    async def _link(self) -> RespConnection:
        return RespConnection(await _in_thread(self._server.connect))

    def _loader(self, link: RespConnection, scope: str) -> Loader:
        return Loader(link, scope, self.label, self._options.timeout)

    def raise_if_unusable(self, claim: Claim) -> None:
        """See :meth:`Store.refuse_if_hopeless`."""
        self._claimed().line.raise_if_unusable()

    async def commit(self, claim: Claim, change: Change) -> None:
        """See :meth:`Store.commit`."""
        await self._claimed().commit(change)

    async def sync(self) -> None:
        """Wait for as many replicas, or for the server's own disk, as the operator asked for."""
        if self._confirmations is not None:
            await self._confirmations.confirm()

    async def capacity(self) -> Capacity:
        """See :meth:`Store.capacity`."""
        return await _in_thread(self._server.capacity)

    async def scopes(self) -> list[ScopeSummary]:
        """See :meth:`Store.scopes`."""
        return await _in_thread(self._scopes)

    def _scopes(self) -> list[ScopeSummary]:
        names = sorted(name.decode() for name in self._server.execute("SMEMBERS", SCOPES))
        summaries = (self._summary(name) for name in names)
        return [summary for summary in summaries if summary is not None]

    def _summary(self, scope: str) -> ScopeSummary | None:
        """Return what is known of *scope*, or None if it is only a name left behind."""
        keys = Keys(scope)
        commands = (("HMGET", keys.scope, "created", "owner"), ("HLEN", keys.inodes), ("EXISTS", keys.lease))
        (created, owner), files, leased = self._server.pipeline(commands)
        if created is None:
            return None
        return ScopeSummary(scope, files, int(created), from_json(owner) if owner and leased else None)

    async def drop(self, scope: str) -> None:
        """See :meth:`Store.drop`."""
        await _in_thread(lambda: self._drop(scope))

    def _drop(self, scope: str, known_gone: bytes = b"") -> None:
        """Fence and mark *scope*, then delete it key by key, its header last: a drop cut short can be repeated."""
        keys = Keys(scope)
        answer = self._server.script(scripts.START_DROP, (keys.scope, keys.lease), known_gone)
        if answer[0] == b"missing":
            raise ScopeMissing(f"there is no scope {scope} in the store {self.label}")
        if answer[0] == b"busy":
            _check_gone(scope, answer[2])
            self._drop(scope, answer[1])
            return
        inos = [int(ino) for ino in self._server.execute("HKEYS", keys.inodes)]
        for start in range(0, len(inos), _UNLINKED_AT_ONCE):
            data = (keys.data(ino) for ino in inos[start : start + _UNLINKED_AT_ONCE])
            self._server.execute("UNLINK", *data)
        self._server.execute("UNLINK", keys.entries, keys.inodes)
        self._server.execute("UNLINK", keys.scope)
        self._server.execute("SREM", SCOPES, scope)

    async def aclose(self) -> None:
        """See :meth:`Store.aclose`."""
        if self._session is not None:
            self._session.line.close()
        self._server.close()

    def _claimed(self) -> Committer:
        if self._session is None:
            raise StoreError("no scope has been claimed")
        return self._session


async def _in_thread(ask: Callable[[], T]) -> T:
    """Return what the blocking *ask* returns. Whoever is cancelled meanwhile does not wait for the server."""
    return await trio.to_thread.run_sync(ask, abandon_on_cancel=True)


def _check_gone(scope: str, owner_json: bytes) -> None:
    """Return if the owner is known to have ended. Raises ScopeBusy, saying what to do, if it may live."""
    owner = from_json(owner_json)
    if not owner.is_gone():
        raise ScopeBusy(
            f"scope {scope} is mounted: {owner.describe()}; unmount it there,"
            f" or if that host is gone wait {LEASE_SECONDS} s for its lease to end"
        )


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store that a ``redis://``, ``rediss://`` or ``unix://`` URL names."""
    return RedisStore(url, options)
