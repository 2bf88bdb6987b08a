"""The fenced connection of one claim to Redis: bringing it up, noticing that it is down, and losing the scope.

It is *up* (``link`` is a connection with an armed fence), *down* (``link`` is None and :meth:`FencedConnection.keep`
brings up another) or *lost* (another owner has claimed the scope, or the scope is gone). Bringing it up takes a new
epoch in the scope's header: after that the server cannot execute anything that was sent over the old link. The header
also says which commit was the last one stored. So the claim can settle an unanswered commit before it sends anything
else: that is what :class:`Recovery` is for.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

import trio

from vfsd.errors import Fenced, ScopeDamaged, StoreError, StoreUnreachable
from vfsd.store.base import LEASE_SECONDS
from vfsd.store.lease import Lease, clock
from vfsd.store.owner import from_json
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.keys import Keys
from vfsd.store.redis.leftovers import Leftover, read_notes
from vfsd.store.redis.resp import ConnectionLost, Reply, ReplyError, RespConnection, RespRequest
from vfsd.store.redis.transaction import Watched, watch, watched

_log = logging.getLogger(__name__)
_OTHER_TYPES = frozenset({b"string", b"list", b"set", b"zset", b"stream"})
"""What TYPE answers for a key that is neither missing nor a hash."""
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts to bring a link up; the last one repeats."""


class Recovery(Protocol):
    """What must be done with commits when the link comes up again, or never will."""

    async def recover(self, link: RespConnection, seq: int, next_ino: int, now: Watched) -> None:
        """Settle unanswered commits. *seq* and *next_ino* are what the header says; *link* has an armed fence.

        *now* is what is watched.

        Raises ConnectionLost, StoreError; Fenced if the scope must be given up.
        """

    def abandon(self) -> None:
        """Give up unanswered commits: the scope is lost."""


class FencedConnection:
    """The connection to *admin*'s server, for the owner of *scope* with *token*. No call takes longer than *timeout* s.

    ``link`` is the connection while it is up. ``epoch`` is the epoch that every commit must find in force. ``lease``
    tells others that the owner lives. *recovery* settles commits.
    """

    def __init__(self, admin: RedisAdmin, scope: str, token: str, timeout: float, recovery: Recovery) -> None:
        self.keys = Keys(scope)
        self.label = admin.label
        self.epoch = b""
        self.link: RespConnection | None = None
        self.lease: Lease[Reply] = Lease(scope, self._renew_lease)
        self._scope = scope
        self._token = token
        self._admin = admin
        self._timeout = timeout
        self._recovery = recovery
        self._changed = trio.Event()
        self._down = trio.Event()
        self._down_since = trio.current_time()
        self._why_down: StoreError = StoreUnreachable("not connected yet")
        self._lost: Fenced | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the scope is lost for good."""
        return self._lost is not None

    # --- using it

    async def usable(self, deadline: float) -> RespConnection:
        """Return the link. While it is down, wait no longer than a commit may take since it went down.

        Raises StoreUnreachable when that time is over. Raises at once Fenced if the scope is lost, and StoreReadOnly or
        StoreRefused if the server answers but does not let us write.
        """
        while self.link is None:
            self.raise_if_unusable()
            with trio.move_on_at(min(deadline, self._down_since + self._timeout)) as limit:
                await self._changed.wait()
            if limit.cancelled_caught:
                raise self._away()
        return self.link

    def raise_if_unusable(self) -> None:
        """Raise the error that waiting for the link would raise, if that is already known."""
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        if self.link is not None:
            return
        if not isinstance(self._why_down, StoreUnreachable):
            raise self._why_down.with_traceback(None)
        if trio.current_time() > self._down_since + self._timeout:
            raise self._away()

    def _away(self) -> StoreUnreachable:
        away = trio.current_time() - self._down_since
        return StoreUnreachable(f"the store {self.label} has been away for {away:.1f} s: {self._why_down}")

    def drop(self, why: StoreError) -> None:
        """Close the link, because it is useless for the reason *why*. :meth:`keep` brings up another."""
        if self.link is not None:
            self.link.close()
            self.link = None
            self._down_since = trio.current_time()
        self._down.set()
        self._announce(why)

    def drop_overdue(self, deadline: float) -> None:
        """Count the link as down since the commit began that ends at *deadline* without an answer."""
        self._down_since = min(self._down_since, deadline - self._timeout)

    def lose(self, reason: Fenced) -> Fenced:
        """Give the scope up for good, and return *reason*."""
        if self._lost is None:
            self._lost = reason
            _log.error("%s; this mount stays readable: unmount it, and mount again to go on", reason)
            self._recovery.abandon()
            self.drop(reason)
        return self._lost

    def _announce(self, why: StoreError) -> None:
        """Wake the tasks that wait for the link: it is up, or down for another reason, or lost."""
        self._why_down = why
        self._changed.set()
        self._changed = trio.Event()

    # --- bringing it up

    async def bring_up(self) -> None:
        """Connect, take a new epoch, arm the fence, recover.

        Raises StoreUnreachable, StoreRefused, Fenced.
        """
        link = RespConnection(await trio.to_thread.run_sync(self._admin.connect, abandon_on_cancel=True))
        try:
            await self._reclaim(link)
        except ConnectionLost as error:
            link.close()
            raise StoreUnreachable(f"lost the store {self.label}: {error}") from error
        except BaseException:
            link.close()
            raise
        self.link = link
        self._down = trio.Event()
        self._announce(StoreUnreachable("up"))

    async def claim_again(self, deadline: float) -> None:
        """Take a new epoch and a new lease over the link that is up, because the lease has ended.

        The process was stopped, or its host slept, or the server was away. If that fails, the link is dropped. Raises
        Fenced if another owner has claimed the scope.
        """
        assert self.link is not None, "the caller has the link"
        why: StoreError = StoreUnreachable(f"the store {self.label} did not renew the lease in time")
        with trio.move_on_at(deadline):
            try:
                await self._reclaim(self.link)
            except Fenced:
                raise
            except StoreError as error:
                why = error
            except ConnectionLost as error:
                why = StoreUnreachable(f"lost the store {self.label}: {error}")
            else:
                return
        self.drop(why)

    async def _reclaim(self, link: RespConnection) -> None:
        asked = clock()
        request = RespRequest()
        lease_ms = b"%d" % (LEASE_SECONDS * 1000)
        token = self._token.encode()
        request.add(b"EVAL", scripts.RECLAIM, b"2", self.keys.scope, self.keys.lease, token, lease_ms)
        answer = (await self._ask(link, request))[0]
        if answer[0] != b"claimed":
            raise self.lose(self._reason(answer))
        self.lease.granted(asked)
        seq, next_ino = self._counters(answer)
        self.epoch = answer[1]
        now = watched(await self._ask(link, watch(self.keys)))
        if now.epoch != self.epoch:
            raise self.disturbed()
        await self._recovery.recover(link, seq, next_ino, now)

    async def notes(self, link: RespConnection) -> dict[bytes, Leftover]:
        """Return the notes of the scope's leftovers, by their field, as the server at *link* has them.

        A note that cannot be read is left alone: loading the scope says that it is damaged.
        """
        request = RespRequest()
        request.add(b"HGETALL", self.keys.leftovers)
        fields = (await self._ask(link, request))[0]
        return read_notes(dict(zip(fields[::2], fields[1::2], strict=True)))[0]

    def disturbed(self) -> StoreUnreachable:
        """Return the error for a header that somebody changed while the link was brought up."""
        return StoreUnreachable(f"the store {self.label}: the scope's header changed while connecting")

    def _counters(self, answer: Sequence[Reply]) -> tuple[int, int]:
        """Return ``seq`` and ``next`` of the header. Raises ScopeDamaged."""
        try:
            return int(answer[2]), int(answer[3])
        except (TypeError, ValueError):
            raise ScopeDamaged(
                f"the header {self.keys.scope.decode()} has no readable seq and next: restore them from a backup"
            ) from None

    async def _ask(self, link: RespConnection, request: RespRequest) -> list[Reply]:
        """Return the replies to *request*. Raises the StoreError for an error among the replies."""
        replies = await link.call(request, trio.current_time() + self._timeout)
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise await self._damage(link) or refusal(self.label, str(reply))
        return replies

    async def _damage(self, link: RespConnection) -> ScopeDamaged | None:
        """Return the error that names the keys of the scope that are no hashes, if there are any."""
        keys = (self.keys.scope, self.keys.inodes, self.keys.entries, self.keys.leftovers)
        request = RespRequest()
        for key in keys:
            request.add(b"TYPE", key)
        kinds = await link.call(request, trio.current_time() + self._timeout)
        wrong = [key.decode() for key, kind in zip(keys, kinds, strict=True) if kind in _OTHER_TYPES]
        if not wrong:
            return None
        return ScopeDamaged(
            f"no hash in the store {self.label}: {', '.join(wrong)}; restore it from a backup,"
            " or mount with --salvage to read what is left"
        )

    def _reason(self, answer: Sequence[Reply]) -> Fenced:
        """Return why a script answered that the scope is not ours."""
        scope = self._scope
        if answer[0] == b"gone":
            return Fenced(f"scope {scope} is gone from the store {self.label}: destroyed, or flushed")
        try:
            if answer[1]:
                return Fenced(f"scope {scope} has been claimed by {from_json(answer[1]).describe()}")
        except ScopeDamaged:
            return Fenced(f"scope {scope} has been claimed by an owner that this vfsd cannot read")
        return Fenced(f"scope {scope} has been claimed and released by another owner")

    # --- keeping it up

    async def keep(self) -> None:
        """Bring the link up whenever it is down, and renew the lease, until the scope is lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_lease)
            while self._lost is None:
                await self._down.wait()
                await self._bring_up_with_retries()
            nursery.cancel_scope.cancel()

    async def _bring_up_with_retries(self) -> None:
        """Try until the link is up or the scope is lost. Log once that it is down, and once that it is up again."""
        attempt = 0
        while self._lost is None and self.link is None:
            try:
                await self.bring_up()
                if attempt:
                    _log.warning("the store %s answers again", self.label)
            except Fenced:
                return
            except StoreError as error:
                self._announce(error)
                if not attempt:
                    _log.warning("%s; trying again", error)
            except Exception as error:  # noqa: BLE001 (a bug here must not end the mount: readers go on)
                self._announce(StoreUnreachable(f"the store {self.label} cannot be connected, by a bug: {error!r}"))
                _log.exception("connecting to the store %s failed by a bug; trying again", self.label)
            else:
                return
            await trio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    def _renew_lease(self) -> Reply | None:
        """Renew the lease. Return None, or the answer that says why the claim is lost. It blocks."""
        answer = self._admin.execute(*self.renewal())
        return None if answer[0] == b"renewed" else answer

    async def _keep_lease(self) -> None:
        self.lose(self._reason(await self.lease.keep()))

    def renewal(self) -> tuple[bytes | str | int, ...]:
        """Return the command that renews the lease, for redis-py to send."""
        return ("EVAL", scripts.RENEW, 2, self.keys.scope, self.keys.lease, self._token, LEASE_SECONDS * 1000)

    def close(self) -> None:
        """Close the link, without telling :meth:`keep`."""
        if self.link is not None:
            self.link.close()
            self.link = None
