"""The store contract over Redis or Valkey.

Claims and listings go through redis-py in worker threads. Commits and hydration go over RESP connections under trio.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TypeVar

import trio

from vfsd import clock
from vfsd.errors import ScopeBusy, ScopeDamaged, ScopeMissing, StoreRefused
from vfsd.store.base import (
    LEASE_SECONDS,
    Batch,
    Capacity,
    Claim,
    Claimed,
    ClaimTerms,
    Damage,
    Record,
    ScopeSummary,
    Store,
    StoreOptions,
)
from vfsd.store.owner import TAKE_OVER, Owner, from_json, living_here
from vfsd.store.ranges import is_scope_name
from vfsd.store.records import FORMAT, pack_limits, unpack_limits
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.claim import RedisClaim
from vfsd.store.redis.header import FIELDS, read_header
from vfsd.store.redis.keys import SCOPES, Keys
from vfsd.store.redis.load import Loader
from vfsd.store.redis.resp import RespConnection
from vfsd.store.tally import Tally, tally
from vfsd.tree.change import CHUNK_SIZE, Limits

T = TypeVar("T")

_INODES_PER_SLICE = 1000
"""How many inodes one step of a listing reads: Redis needs less than a millisecond for them."""
_FILES_PER_SLICE = 100
"""How many files one step of :meth:`RedisStore.drop` deletes: Redis needs less than a millisecond for them."""


class RedisStore(Store):
    """The scopes of the server that *url* names."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self._admin = RedisAdmin(url, options.timeout)
        self._options = options
        self._claims: list[RedisClaim] = []
        self.label = self._admin.label

    async def check(self) -> list[str]:
        """See :meth:`Store.check`."""
        eviction = self._options.allow_eviction
        return await _in_thread(lambda: self._admin.preflight(self._options.fsync, allow_eviction=eviction))

    async def claim(self, scope: str, owner: Owner, terms: ClaimTerms) -> Claim:
        """See :meth:`Store.claim`."""
        if not await _in_thread(lambda: self._is_new(scope)):
            await self._check_header(scope)
        created = await _in_thread(lambda: self._claim(scope, owner, terms))
        limits = await _in_thread(lambda: self._update_limits(scope, owner, terms.limits))
        claim = RedisClaim(self._admin, Claimed(scope, owner, limits, created), self._options)
        self._claims.append(claim)
        await claim.connect()
        return claim

    def _is_new(self, scope: str) -> bool:
        return not self._admin.execute("EXISTS", Keys(scope).scope)

    async def _check_header(self, scope: str) -> None:
        link = await self._connect()
        try:
            await self._loader(link, scope).check_header()
        finally:
            link.close()

    def _claim(self, scope: str, owner: Owner, terms: ClaimTerms, dead_epoch: bytes = b"") -> bool:
        """Claim *scope*, and return whether the claim created it.

        *dead_epoch* is the epoch of an owner that has certainly ended: the claim need not wait for its lease.
        """
        keys = Keys(scope)
        if not terms.take_over:
            self._raise_if_lives_here(scope, last_resort=TAKE_OVER)
        if terms.create and not self._admin.execute("SISMEMBER", SCOPES, scope):
            self._admin.execute("SADD", SCOPES, scope)  # a full server refuses this, so it gets no new scope
        answer = self._admin.script(
            scripts.CLAIM,
            (keys.scope, keys.lease, SCOPES),
            owner.to_json(),
            owner.token,
            LEASE_SECONDS * 1000,
            dead_epoch,
            int(terms.create),
            int(terms.take_over),
            FORMAT,
            CHUNK_SIZE,
            clock.now(),
            scope,
        )
        if answer[0] == b"missing":
            raise self._missing(scope)
        if answer[0] == b"dropping":
            raise ScopeBusy(
                f"scope {scope} is being destroyed in the store {self.label}: mount it again when that is done;"
                f" if nobody destroys it any longer, finish with 'vfsd destroy {scope}'"
            )
        if answer[0] == b"busy":
            _raise_if_alive(scope, answer[2], last_resort=TAKE_OVER)
            return self._claim(scope, owner, terms, answer[1])
        return bool(answer[2] == b"1")

    def _raise_if_lives_here(self, scope: str, *, last_resort: str = "") -> None:
        """Raise ScopeBusy if the owner lives on this host: a step of the server's clock may have ended its lease."""
        owner = self._admin.execute("HGET", Keys(scope).scope, "owner")
        if owner and living_here(owner):
            _raise_if_alive(scope, owner, last_resort=last_resort)

    def _update_limits(self, scope: str, owner: Owner, changes: Limits) -> Limits:
        """Change the limits of a scope that *owner* has claimed, and return the limits in force.

        If the claim is lost already, nothing changes: connecting finds that out.
        """
        header = Keys(scope).scope
        try:
            present = unpack_limits(self._admin.execute("HGET", header, "limits") or "{}")
        except ValueError as error:  # written since the header was checked
            raise ScopeDamaged(f"the header {header.decode()} of scope {scope} is not readable ({error})") from None
        limits = present.changed_by(changes)
        if limits != present:
            self._admin.script(scripts.SET_LIMITS, (header,), owner.token, pack_limits(limits))
        return limits

    async def load(self, scope: str) -> AsyncIterator[Batch]:
        """See :meth:`Store.load`."""
        link = await self._connect()
        try:
            async with aclosing(self._loader(link, scope).batches()) as batches:
                async for batch in batches:
                    yield batch
        finally:
            link.close()

    async def _connect(self) -> RespConnection:
        return RespConnection(await _in_thread(self._admin.connect))

    def _loader(self, link: RespConnection, scope: str) -> Loader:
        return Loader(link, scope, self.label, self._options.timeout)

    def key_of(self, scope: str, record: Record) -> str:
        """See :meth:`Store.key_of`."""
        return Keys(scope).place_of(record)

    async def capacity(self) -> Capacity:
        """See :meth:`Store.capacity`."""
        return await _in_thread(self._admin.capacity)

    async def scopes(self) -> list[ScopeSummary]:
        """See :meth:`Store.scopes`."""
        return await _in_thread(self._scopes)

    def _scopes(self) -> list[ScopeSummary]:
        summaries = (self._summary(name) for name in sorted(self._admin.execute("SMEMBERS", SCOPES)))
        return [summary for summary in summaries if summary is not None]

    def _summary(self, name: bytes) -> ScopeSummary | None:
        """Return the summary of scope *name*, or None if only its name is left (an interrupted claim or drop)."""
        if not is_scope_name(name):
            shown = name.decode(errors="backslashreplace")
            return ScopeSummary(shown, 0, 0, None, Damage(SCOPES.decode(), "this is not the name of a scope"))
        scope = name.decode()
        keys = Keys(scope)
        header_fields: tuple[bytes | str, ...] = ("HMGET", keys.scope, *FIELDS, "owner")
        try:
            (*values, owner), leased = self._admin.pipeline((header_fields, ("EXISTS", keys.lease)))
            found = self._tally(keys)
        except StoreRefused as refused:
            if "WRONGTYPE" not in str(refused):
                raise
            return ScopeSummary(scope, 0, 0, None, Damage(keys.scope.decode(), str(refused)))
        if not any(values):
            return None
        header = read_header(values)
        damages = [Damage(f"{keys.scope.decode()} field {field}", why) for field, why in header.faults.items()]
        holder = None
        try:
            holder = (_unless_gone(from_json(owner)) if leased else living_here(owner)) if owner else None
        except ScopeDamaged as error:
            damages.append(Damage(f"{keys.scope.decode()} field owner", str(error)))
        damage = next(iter(damages), None)
        return ScopeSummary(
            scope, found.files, header.numbers["created"], holder, damage, found.bytes, found.changed_ns
        )

    def _tally(self, keys: Keys) -> Tally:
        slices = self._admin.scan(keys.inodes, _INODES_PER_SLICE)
        return tally(pair for fields in slices for pair in fields.items())

    async def droppable(self, scope: str) -> ScopeSummary:
        """See :meth:`Store.droppable`."""
        return await _in_thread(lambda: self._droppable(scope))

    def _droppable(self, scope: str) -> ScopeSummary:
        keys = Keys(scope)
        self._raise_if_lives_here(scope)
        owner, leased = self._admin.pipeline((("HGET", keys.scope, "owner"), ("EXISTS", keys.lease)))
        if owner and leased:
            _raise_if_alive(scope, owner)
        summary = self._summary(scope.encode())
        if summary is None:
            raise self._missing(scope)
        return summary

    def _missing(self, scope: str) -> ScopeMissing:
        return ScopeMissing(f"there is no scope {scope} in the store {self.label}")

    async def drop(self, scope: str) -> None:
        """See :meth:`Store.drop`."""
        await _in_thread(lambda: self._drop(scope))

    def _drop(self, scope: str, dead_epoch: bytes = b"") -> None:
        """Fence *scope* and mark it, then delete its keys. The header is last, so an interrupted drop can be repeated.

        Others use the server meanwhile, so content is deleted in slices. Each step does nothing if the scope is no
        longer marked: then another process has finished, and there may be a new scope of this name.
        *dead_epoch* is the epoch of an owner that has certainly ended.
        """
        keys = Keys(scope)
        self._raise_if_lives_here(scope)
        answer = self._admin.script(scripts.START_DROP, (keys.scope, keys.lease), dead_epoch)
        if answer[0] == b"missing":
            raise self._missing(scope)
        if answer[0] == b"busy":
            _raise_if_alive(scope, answer[2])
            self._drop(scope, answer[1])
            return
        for fields in self._admin.scan(keys.inodes, _FILES_PER_SLICE):
            data = (keys.data_prefix + ino for ino in fields)  # also of a damaged scope, where it may be no number
            if not self._admin.script(scripts.DROP_SLICE, (keys.scope, *data)):
                return
        rest = (keys.scope, SCOPES, keys.inodes, keys.entries, keys.leftovers)
        self._admin.script(scripts.FINISH_DROP, rest, scope)

    async def aclose(self) -> None:
        """See :meth:`Store.aclose`."""
        for claim in self._claims:
            claim.close()
        self._admin.close()


async def _in_thread(call: Callable[[], T]) -> T:
    """Run the blocking *call* in a thread, and return its result. A cancelled caller does not wait for the server."""
    return await trio.to_thread.run_sync(call, abandon_on_cancel=True)


def _unless_gone(owner: Owner) -> Owner | None:
    return None if owner.is_gone() else owner


def _raise_if_alive(scope: str, owner_json: bytes | None, *, last_resort: str = "") -> None:
    """Raise ScopeBusy, with a remedy, if the owner may be alive. Raises ScopeDamaged if nobody knows who that is.

    *last_resort* ends the message.
    """
    owner = from_json(owner_json or b"", f"{Keys(scope).scope.decode()} field owner: ")
    if not owner.is_gone():
        raise ScopeBusy(
            f"scope {scope} is mounted: {owner.describe()}; unmount it there,"
            f" or if that host is gone wait {LEASE_SECONDS} s for its lease to end{last_resort}"
        )


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store that a ``redis://``, ``rediss://``, ``redis+sentinel://`` or ``unix://`` URL names."""
    return RedisStore(url, options)
