"""The life of one mount: check → claim → hydrate → mount → ready → serve → drain → unmount → release.

Each step undoes itself on the way out, whatever ends it; a signal is such an end at every step. The daemon never
touches its own mountpoint once it is mounted: it would wait for itself.
"""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import trio

from vfsd import __version__, clock, registry
from vfsd.config import MountConfig
from vfsd.control import server as control
from vfsd.errors import ScopeMissing, StoreError, UncleanEnd, VfsdError
from vfsd.fuse.session import FuseSession
from vfsd.herald import Herald
from vfsd.hydrate import hydrate
from vfsd.memory import MemoryCap
from vfsd.store import open_store
from vfsd.store.base import Claim, Store, StoreOptions, Terms
from vfsd.store.owner import this_process
from vfsd.tasks import describe_tasks
from vfsd.tree.tree import Tree
from vfsd.volume import Volume

_log = logging.getLogger(__name__)

_MEASURE_SECONDS = 30.0
_SAMPLE_SECONDS = 0.5
_RELEASE_SECONDS = 0.8
"""Longest to wait for the store when giving the scope up: after that its lease ends by itself."""


class Daemon:
    """Serves one mount as *config* says, telling *herald* how far it has come."""

    def __init__(self, config: MountConfig, herald: Herald) -> None:
        self._config = config
        self._herald = herald
        self._since_ns = clock.now()
        self._memory = MemoryCap(config.max_memory)
        self._unfinished: list[str] = []
        self._everything = trio.CancelScope()
        self._stop: Callable[[], None] = self._everything.cancel
        """What the first signal does: until the mount is served there is nothing to finish."""

    async def run(self) -> None:
        """Live, from claim to release. Raises VfsdError for what keeps the mount from coming up or ending well."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1) as signals:
            faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True, chain=True)
            async with trio.open_nursery() as beside:
                beside.start_soon(self._heed_signals, signals)
                await self._live()
                beside.cancel_scope.cancel()
        if self._unfinished:
            raise UncleanEnd("; ".join(self._unfinished))

    async def _live(self) -> None:
        options = StoreOptions(self._config.store_timeout, self._config.allow_eviction, self._config.fsync)
        async with AsyncExitStack() as stack:
            store = open_store(self._config.store, options)
            stack.push_async_callback(store.aclose)
            with self._everything:
                await self._live_with(store, stack)

    async def _live_with(self, store: Store, stack: AsyncExitStack) -> None:
        """Live on *store*; what outlasts a forced end is left to *stack*."""
        async with trio.open_nursery() as nursery:
            for warning in await store.check():
                self._herald.warn(warning)
            claim = await self._claim(store, stack)
            if claim is not None:
                nursery.start_soon(store.keep, claim)
            volume = await self._hydrated(store, claim, nursery)
            await self._serve(volume)
            await self._drain(volume)
            nursery.cancel_scope.cancel()

    async def _claim(self, store: Store, stack: AsyncExitStack) -> Claim | None:
        """Claim the scope, unless it is only to be read, and see that it will be released."""
        config = self._config
        if config.read_only:
            return None
        terms = Terms(create=not config.must_exist, take_over=config.take_over, limits=config.limits)
        with trio.CancelScope(shield=True):  # a claim of which nobody has heard could not be released
            claim = await store.claim(config.scope, this_process(config.mountpoint), terms)
        stack.push_async_callback(self._release, store, claim)
        if claim.created:
            self._herald.note(f"created scope {config.scope} in {store.label}")
        return claim

    async def _release(self, store: Store, claim: Claim) -> None:
        """Release *claim*; if the store is away, its lease ends by itself."""
        try:
            with trio.CancelScope(shield=True), trio.fail_after(_RELEASE_SECONDS):
                await store.release(claim)
        except (StoreError, trio.TooSlowError) as error:
            why = str(error) or "no answer in time"
            self._unfinished.append(f"scope {claim.scope} could not be released, its lease will end by itself: {why}")

    async def _drain(self, volume: Volume) -> None:
        """Store what may still be to store: truncations of files that were opened with O_TRUNC."""
        try:
            await volume.changes.drain()
        except VfsdError as error:
            self._unfinished.append(f"a truncation could not be stored, the old content stays: {error}")

    async def _hydrated(self, store: Store, claim: Claim | None, nursery: trio.Nursery) -> Volume:
        scope = self._config.scope
        tree = await hydrate(store, scope, self._herald.progress, salvage=self._config.salvage)
        volume = Volume(tree, store, claim, nursery, self._memory)
        if not tree.inodes:
            if claim is None:
                raise ScopeMissing(f"scope {scope} in {store.label} is empty: mount it once for writing")
            await volume.found(os.geteuid(), os.getegid())
        await volume.measure_room()
        self._memory.sample(tree)
        return volume

    async def _serve(self, volume: Volume) -> None:
        """Mount, say so, and answer requests until told to stop or unmounted from outside."""
        session = FuseSession(volume, self._config)
        session.mount()
        try:
            async with trio.open_nursery() as beside:
                beside.start_soon(keep_measuring, volume)
                if self._config.max_memory:
                    beside.start_soon(self._keep_sampling, volume.tree)
                async with _control_socket(self._registration(volume.store), self._handlers(volume), beside):
                    beside.start_soon(self._announce, volume.tree)
                    await self._serve_until_stopped(session)
                beside.cancel_scope.cancel()
        finally:
            session.close()

    async def _serve_until_stopped(self, session: FuseSession) -> None:
        self._stop = session.stop
        try:
            await session.serve()
        finally:
            self._stop = _go_on_ending
        self._herald.stopping()

    async def _announce(self, tree: Tree) -> None:
        config = self._config
        self._herald.ready(f"scope {config.scope} mounted at {config.mountpoint}, {len(tree.inodes)} files")

    async def _heed_signals(self, signals: AsyncIterator[int]) -> None:
        """Stop at the first SIGTERM or SIGINT, force the end at the second; dump tasks and threads at SIGUSR1."""
        stopping = False
        async for number in signals:
            if number == signal.SIGUSR1:
                _log.info("tasks:\n%s", describe_tasks())
            elif stopping:
                self._unfinished.append("forced to end: what was in flight got no answer")
                self._everything.cancel()
            else:
                stopping = True
                _log.info("%s: finishing what is in flight", signal.Signals(number).name)
                self._stop()

    async def _keep_sampling(self, tree: Tree) -> None:
        """Measure the daemon's memory often enough that its cap holds."""
        while True:
            self._memory.sample(tree)
            await trio.sleep(_SAMPLE_SECONDS)

    def _registration(self, store: Store) -> registry.Registration:
        config = self._config
        return registry.Registration(
            config.scope, config.mountpoint, store.label, os.getpid(), self._since_ns, __version__
        )

    def _handlers(self, volume: Volume) -> dict[str, control.Handler]:
        async def info(_arguments: dict[str, Any]) -> dict[str, Any]:
            error = volume.changes.last_error
            return {
                "files": len(volume.tree.inodes),
                "bytes": volume.tree.content_bytes,
                "pending": volume.store.pending,
                "read_only": self._config.read_only,
                "last_error": error and {"when_ns": error[0], "what": error[1]},
            }

        return {"info": info}


@asynccontextmanager
async def _control_socket(
    registration: registry.Registration, handlers: dict[str, control.Handler], nursery: trio.Nursery
) -> AsyncIterator[None]:
    """Register the mount and answer at its control socket."""
    path = registry.register(registration)
    try:
        nursery.start_soon(control.serve, control.listen(path), handlers)
        yield
    finally:
        registry.unregister(registration.mountpoint)


def _go_on_ending() -> None:
    """Do nothing: what is left to do, storing and releasing, has its own time limits."""


async def keep_measuring(volume: Volume) -> None:
    """Ask the store for its room now and then: statfs never does. No trouble with that ends a mount."""
    while True:
        await trio.sleep(_MEASURE_SECONDS)
        try:
            await volume.measure_room()
        except (StoreError, OSError) as error:
            _log.info("could not measure the store's room: %s", error)
