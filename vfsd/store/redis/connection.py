"""A claimed scope's line to Redis: bringing it up, noticing that it is down, and losing the scope for good.

States: *up* (a link with an armed fence), *down* (none; :meth:`Line.keep` is bringing it up), *lost* (another owner,
or the scope is gone). A commit whose answer did not come is a *doubt*. Bringing the line up takes a new epoch, after
which nothing sent over the old link can be executed any more, and reads ``seq``, which tells whether the doubtful
commit had been. So a doubt is always settled before anything else is sent.
"""

import logging
from collections.abc import Sequence

import trio

from vfsd.errors import Fenced, ScopeDamaged, StoreError, StoreUnreachable
from vfsd.store.base import LEASE_SECONDS, Claim
from vfsd.store.owner import from_json
from vfsd.store.redis import scripts
from vfsd.store.redis.admin import RedisAdmin
from vfsd.store.redis.doubt import TransactionInDoubt
from vfsd.store.redis.errors import refusal
from vfsd.store.redis.history import History
from vfsd.store.redis.keys import Keys
from vfsd.store.redis.resp import ConnectionLost, Reply, ReplyError, RespConnection, RespRequest
from vfsd.store.redis.transaction import Verdict, decode, encode, next_ino, watch
from vfsd.tree.change import Change

_log = logging.getLogger(__name__)
_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Seconds between attempts to bring a link up; the last one goes on."""


class FencedConnection:
    """The connection of *claim* to *server*; no call on it may take longer than *timeout* seconds.

    ``epoch`` is the one every commit must find in force, ``seq`` the number of the last commit stored,
    ``next_ino`` the next inode number as the header has it.
    """

    def __init__(self, server: RedisAdmin, claim: Claim, timeout: float) -> None:
        self.keys = Keys(claim.scope)
        self.label = server.label
        self.epoch = b""
        self.seq = 0
        self.next_ino = 0
        self._server = server
        self._claim = claim
        self._timeout = timeout
        self._link: RespConnection | None = None
        self._changed = trio.Event()
        self._down = trio.Event()
        self._down_since = trio.current_time()
        self._why_down: StoreError = StoreUnreachable("not connected yet")
        self._lost: Fenced | None = None
        self._doubt: TransactionInDoubt | None = None
        self._history = History()

    # --- what commits need

    async def usable(self, deadline: float) -> RespConnection:
        """Return the link, waiting for it no longer than a commit may take since it went down.

        Raises StoreUnreachable when that time is over; at once Fenced when the scope is lost, and StoreReadOnly or
        StoreRefused when the server answers but will not have us write.
        """
        while self._link is None:
            self.raise_if_unusable()
            with trio.move_on_at(min(deadline, self._down_since + self._timeout)) as limit:
                await self._changed.wait()
            if limit.cancelled_caught:
                raise self._away()
        return self._link

    def raise_if_unusable(self) -> None:
        """Raise at once what waiting for the link would come to, as far as that is known."""
        if self._lost is not None:
            raise self._lost.with_traceback(None)
        if self._link is not None:
            return
        if not isinstance(self._why_down, StoreUnreachable):
            raise self._why_down.with_traceback(None)
        if trio.current_time() > self._down_since + self._timeout:
            raise self._away()

    def _away(self) -> StoreUnreachable:
        away = trio.current_time() - self._down_since
        return StoreUnreachable(f"the store {self.label} has been away for {away:.1f} s: {self._why_down}")

    def stored(self, seq: int, changes: Sequence[Change]) -> None:
        """Take note that transaction *seq* has stored *changes*."""
        self.seq = seq
        self.next_ino = next_ino(changes, self.next_ino)
        self._history.remember(seq, changes)

    async def settle(self, lost: ConnectionLost, seq: int, changes: Sequence[Change], deadline: float) -> bool:
        """Return whether transaction *seq* of *changes*, sent over a link that broke, was stored.

        Raises InDoubt at *deadline*, and when the scope is lost meanwhile: nobody will ever know.
        """
        self._doubt = doubt = TransactionInDoubt(f"lost the store {self.label} during a commit: {lost}", seq, changes)
        _log.warning("%s", doubt)
        self.drop(doubt)
        with trio.move_on_at(deadline):
            stored = await doubt.settled()
            if self._lost is not None:
                raise doubt
            return stored
        self._down_since = min(self._down_since, deadline - self._timeout)
        raise doubt

    def drop(self, why: StoreError) -> None:
        """Close the link: it is of no further use. :meth:`keep` brings up another."""
        if self._link is not None:
            self._link.close()
            self._link = None
            self._down_since = trio.current_time()
        self._down.set()
        self._tell(why)

    def lose(self, reason: Fenced) -> Fenced:
        """Give the scope up for good, and return *reason*."""
        if self._lost is None:
            self._lost = reason
            _log.error("%s; this mount stays readable: unmount it, and mount again to go on", reason)
            self._resolve_doubt(self.seq)
            self.drop(reason)
        return self._lost

    def _tell(self, why: StoreError) -> None:
        """Let those who wait for the link look again: it is up, or down for another reason, or will never be up."""
        self._why_down = why
        self._changed.set()
        self._changed = trio.Event()

    # --- keeping it

    async def bring_up(self) -> None:
        """Connect, take a new epoch, settle the doubt, arm the fence.

        Raises StoreUnreachable, StoreRefused, Fenced.
        """
        link = RespConnection(await trio.to_thread.run_sync(self._server.connect, abandon_on_cancel=True))
        try:
            await self._reclaim(link)
        except ConnectionLost as error:
            link.close()
            raise StoreUnreachable(f"lost the store {self.label}: {error}") from error
        except BaseException:
            link.close()
            raise
        self._link = link
        self._down = trio.Event()
        self._tell(StoreUnreachable("up"))

    async def _reclaim(self, link: RespConnection) -> None:
        request = RespRequest()
        lease_ms = b"%d" % (LEASE_SECONDS * 1000)
        token = self._claim.owner.token.encode()
        request.add(b"EVAL", scripts.RECLAIM, b"2", self.keys.scope, self.keys.lease, token, lease_ms)
        answer = await self._ask(link, request)
        if answer[0] != b"claimed":
            raise self.lose(self._reason(answer))
        seq, following = self._counters(answer)
        self.epoch, self.next_ino = answer[1], max(self.next_ino, following)
        if await self._ask(link, watch(self.keys)) != self.epoch:
            raise StoreUnreachable(f"the store {self.label}: the scope's header changed while connecting")
        self._resolve_doubt(seq)
        if seq < self.seq:
            await self._store_again(link, seq)
        self.seq = max(self.seq, seq)

    def _counters(self, answer: Sequence[Reply]) -> tuple[int, int]:
        """Return ``seq`` and ``next`` of the header. Raises ScopeDamaged."""
        try:
            return int(answer[2]), int(answer[3])
        except (TypeError, ValueError):
            raise ScopeDamaged(
                f"the header {self.keys.scope.decode()} has no readable seq and next: restore them from a backup"
            ) from None

    async def _store_again(self, link: RespConnection, seq: int) -> None:
        """Store the transactions after *seq* once more: the server acknowledged them, and has come back without."""
        missing = self._history.after(seq)
        if missing is None:
            lost = self.seq - seq
            raise self.lose(
                Fenced(
                    f"the store {self.label} has lost {lost} acknowledged commits of scope {self._claim.scope},"
                    " more than are remembered here: copy what you need from this mount"
                )
            )
        for number, changes in missing:
            header = (b"seq", b"%d" % number, b"next", b"%d" % self.next_ino)
            deadline = trio.current_time() + self._timeout
            outcome = decode(await link.call(encode(self.keys, changes, header), deadline))
            if outcome.verdict is Verdict.REFUSED:
                raise refusal(self.label, outcome.why)
            if outcome.verdict is not Verdict.STORED:
                raise StoreUnreachable(f"the store {self.label}: the scope's header changed while connecting")
        _log.warning("the store %s had lost %d acknowledged commits: stored again", self.label, len(missing))

    async def _ask(self, link: RespConnection, request: RespRequest) -> Reply:
        """Return the last reply to *request*; raise what an error among the replies means."""
        replies = await link.call(request, trio.current_time() + self._timeout)
        for reply in replies:
            if isinstance(reply, ReplyError):
                raise refusal(self.label, str(reply))
        return replies[-1]

    def _resolve_doubt(self, seq: int) -> None:
        """Settle what is in doubt, *seq* being the number of the last transaction that the server has."""
        doubt, self._doubt = self._doubt, None
        if doubt is not None:
            doubt.stored = seq >= doubt.seq
            if doubt.stored:
                self.stored(doubt.seq, doubt.changes)
            doubt.resolved.set()

    def _reason(self, answer: Sequence[Reply]) -> Fenced:
        """Return why a script answered that the scope is not ours."""
        scope = self._claim.scope
        if answer[0] == b"gone":
            return Fenced(f"scope {scope} is gone from the store {self.label}: destroyed, or flushed")
        try:
            if answer[1]:
                return Fenced(f"scope {scope} has been claimed by {from_json(answer[1]).describe()}")
        except ScopeDamaged:
            return Fenced(f"scope {scope} has been claimed by an owner that this vfsd cannot read")
        return Fenced(f"scope {scope} has been claimed and released by another owner")

    async def keep(self) -> None:
        """Bring the link up whenever it is down, and renew the lease, until the scope is lost."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew_lease)
            while self._lost is None:
                await self._down.wait()
                await self._bring_up_somehow()
            nursery.cancel_scope.cancel()

    async def _bring_up_somehow(self) -> None:
        """Try until the link is up or the scope is lost; say once that it is down, and that it is up again."""
        attempt = 0
        while self._lost is None and self._link is None:
            try:
                await self.bring_up()
                if attempt:
                    _log.warning("the store %s answers again", self.label)
            except Fenced:
                return
            except StoreError as error:
                self._tell(error)
                if not attempt:
                    _log.warning("%s; trying again", error)
            except Exception as error:  # noqa: BLE001 (a bug here must not end the mount: readers go on)
                self._tell(StoreUnreachable(f"the store {self.label} cannot be connected, by a bug: {error!r}"))
                _log.exception("connecting to the store %s failed by a bug; trying again", self.label)
            else:
                return
            await trio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
            attempt += 1

    async def _renew_lease(self) -> None:
        while True:
            await trio.sleep(LEASE_SECONDS / 3)
            try:
                answer = await trio.to_thread.run_sync(self._renew, abandon_on_cancel=True)
            except StoreError as error:
                _log.info("could not renew the lease of scope %s: %s", self._claim.scope, error)
                continue
            except Exception:  # noqa: BLE001 (a bug here must not end the mount either)
                _log.exception("renewing the lease of scope %s failed by a bug", self._claim.scope)
                continue
            if answer[0] != b"renewed":
                self.lose(self._reason(answer))

    def _renew(self) -> Reply:
        return self._server.execute(*self.renewal())

    def renewal(self) -> tuple[bytes | str | int, ...]:
        """Return the command that renews the lease, for redis-py to send."""
        token = self._claim.owner.token
        return ("EVAL", scripts.RENEW, 2, self.keys.scope, self.keys.lease, token, LEASE_SECONDS * 1000)

    def close(self) -> None:
        """Close the link, without a word to :meth:`keep`."""
        if self._link is not None:
            self._link.close()
            self._link = None
