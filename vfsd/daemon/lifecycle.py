"""The life of one mount: check → claim → hydrate → seed → mount → ready → serve → drain → unmount → release.

Each step undoes itself on the way out, whatever ends it. A signal may end it at every step. The daemon never touches
its own mountpoint once it is mounted: it would wait for itself.
"""

import faulthandler
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import trio

from vfsd import __version__, clock
from vfsd.config import MountConfig
from vfsd.control import server as control
from vfsd.counted import counted
from vfsd.daemon.collector import keep_pauses_short
from vfsd.daemon.freed_memory import FreedMemory
from vfsd.daemon.mounted import MountedScope, build
from vfsd.daemon.notify import StartupReporter
from vfsd.daemon.presence import is_at, tell_if_removed
from vfsd.daemon.task_dump import describe_tasks
from vfsd.errors import ScopeMissing, StoreError, UncleanEnd, VfsdError
from vfsd.fuse.device import check_device
from vfsd.fuse.libfuse import check_mount_options
from vfsd.fuse.session import FuseSession
from vfsd.host import registrations
from vfsd.host.mount_table import mount_at
from vfsd.scope.hydrate import hydrate
from vfsd.scope.volume import Backing, Volume
from vfsd.seeds.sources import SeedSource, read_sources
from vfsd.store.base import Claim, ClaimTerms, Store, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store

_log = logging.getLogger(__name__)

_MEASURE_SECONDS = 30.0
_RELEASE_SECONDS = 0.8
"""The longest wait for the store when the scope is released. After that its lease ends by itself."""


class Daemon:
    """Serves one mount as *config* says, and tells *reporter* how far it has come."""

    def __init__(self, config: MountConfig, reporter: StartupReporter) -> None:
        self._config = config
        self._reporter = reporter
        self._since_ns = clock.now()
        self._unfinished: list[str] = []
        self._notes: list[str] = []
        """What is reported as soon as the mount is up: until then all of it can still be undone."""
        self._came_up = False
        self._keeping = trio.CancelScope()
        self._everything = trio.CancelScope()
        self._stop: Callable[[], None] = self._everything.cancel
        """What the first signal does: until the mount is served there is nothing to finish."""

    async def run(self) -> None:
        """Run from claim to release. Raises VfsdError for what keeps the mount from coming up or ending well."""
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1) as signals:
            faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True, chain=True)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._heed_signals, signals)
                await self._live()
                nursery.cancel_scope.cancel()
        if self._unfinished:
            raise UncleanEnd("; ".join(self._unfinished))

    async def _live(self) -> None:
        sources = await trio.to_thread.run_sync(read_sources, self._config.skills, self._config.seeds)
        options = StoreOptions(self._config.store_timeout, self._config.allow_eviction, self._config.fsync)
        check_device()
        check_mount_options(self._config)
        async with AsyncExitStack() as stack:
            store = open_store(self._config.store, options)
            stack.push_async_callback(store.aclose)
            with self._everything:
                await self._live_with(store, stack, sources)

    async def _live_with(self, store: Store, stack: AsyncExitStack, sources: list[SeedSource]) -> None:
        """Run on *store*, with *sources* seeded from the start. *stack* holds what must happen after a forced end."""
        async with trio.open_nursery() as nursery:
            for warning in await store.check():
                self._reporter.warn(warning)
            claim = await self._claim(store, stack)
            if claim is not None:
                nursery.start_soon(self._keep, claim)
            mounted = await self._hydrated(Backing(store, claim), nursery)
            await mounted.seeding.start_with(sources)
            sources.clear()  # the tree has all of it by now, and may replace it
            await self._serve(mounted, Backing(store, claim))
            await self._drain(mounted.volume)
            nursery.cancel_scope.cancel()

    # --- the claim

    async def _claim(self, store: Store, stack: AsyncExitStack) -> Claim | None:
        """Claim the scope, unless it is only to be read, and see that it will be released."""
        config = self._config
        if config.read_only:
            return None
        terms = ClaimTerms(create=not config.must_exist, take_over=config.take_over, limits=config.limits)
        with trio.CancelScope(shield=True):  # a claim that nobody has heard of could not be released
            claim = await store.claim(config.scope, this_process(config.mountpoint), terms)
        stack.push_async_callback(self._give_up, claim)
        if claim.created:
            self._notes.append(f"created scope {config.scope} in {store.label}")
        return claim

    async def _keep(self, claim: Claim) -> None:
        """Keep *claim* alive until it is given up."""
        with self._keeping:
            await claim.keep()

    async def _give_up(self, claim: Claim) -> None:
        """Release *claim*. One that never came up undoes a new scope. If the store is away, the lease ends."""
        end = claim.undo if claim.created and not self._came_up else claim.release
        try:
            with trio.CancelScope(shield=True), trio.fail_after(_RELEASE_SECONDS):
                await end()
        except (StoreError, trio.TooSlowError) as error:
            why = str(error) or "no answer in time"
            self._unfinished.append(f"scope {claim.scope} could not be released, its lease will end by itself: {why}")

    # --- the scope

    async def _hydrated(self, backing: Backing, nursery: trio.Nursery) -> MountedScope:
        """Load the scope, and build what serves it. A new scope gets its root directory."""
        scope = self._config.scope
        tree = await hydrate(backing.store, scope, self._reporter.progress, salvage=self._config.salvage)
        nursery.start_soon(keep_pauses_short)
        mounted = build(self._config, tree, backing, nursery)
        volume = mounted.volume
        if volume.is_empty:
            if backing.claim is None:
                raise ScopeMissing(f"scope {scope} in {volume.store_label} is empty: mount it once for writing")
            await volume.make_root(os.geteuid(), os.getegid())
        await volume.measure_room()
        volume.measure_memory()
        return mounted

    async def _drain(self, volume: Volume) -> None:
        """Store the truncations of files that were opened with O_TRUNC and not written since."""
        try:
            await volume.drain()
        except VfsdError as error:
            self._unfinished.append(f"a truncation could not be stored, the old content stays: {error}")

    async def _drop(self, volume: Volume, backing: Backing) -> None:
        """Destroy everything that is stored of the scope. Raises FsError (EROFS) for a read-only mount, StoreError.

        Once the scope is given up there is no way back. If the store fails then, the mount stays readable, and this may
        be called again.
        """
        await volume.retire()
        assert backing.claim is not None, "a volume without a claim refuses to retire"
        self._keeping.cancel()
        await backing.claim.release()
        await backing.store.drop(backing.claim.scope)
        self._reporter.has_destroyed = True

    # --- serving

    async def _serve(self, mounted: MountedScope, backing: Backing) -> None:
        """Mount, say so, and answer requests until told to stop, or until somebody unmounts."""
        session, volume = mounted.session, mounted.volume
        operations = mounted.control_operations(partial(self._drop, volume, backing))
        session.mount()
        mount = mount_at(self._config.mountpoint)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(keep_measuring, volume)
                freed = FreedMemory(mounted.memory, mounted.tree)
                nursery.start_soon(freed.keep_freeing)
                nursery.start_soon(freed.keep_returning)
                if mount is not None:
                    nursery.start_soon(tell_if_removed, mount)
                serving = partial(control.serve, handlers=operations, room=volume.check_memory)
                async with _control_socket(self._registration(volume.store_label), serving, nursery):
                    nursery.start_soon(self._announce, mounted)
                    await self._serve_until_stopped(session)
                nursery.cancel_scope.cancel()
        finally:
            session.close(unmount=is_at(self._config.mountpoint, mount))

    async def _serve_until_stopped(self, session: FuseSession) -> None:
        self._came_up = True
        self._stop = session.stop
        try:
            await session.serve()
        finally:
            self._stop = _go_on_ending
        self._reporter.stopping()

    async def _announce(self, mounted: MountedScope) -> None:
        for note in self._notes:
            self._reporter.note(note)
        config, seeded = self._config, mounted.overlay.files
        files = counted(mounted.volume.files, "file")
        text = f"scope {config.scope} mounted at {config.mountpoint}, {files}"
        self._reporter.ready(f"{text}, {seeded} seeded" if seeded else text)

    async def _heed_signals(self, signals: AsyncIterator[int]) -> None:
        """Stop at the first SIGTERM or SIGINT, force the end at the second. Dump tasks and threads at SIGUSR1."""
        stopping = False
        async for number in signals:
            if number == signal.SIGUSR1:
                _log.info("tasks:\n%s", describe_tasks(), extra={"lines": True})
            elif stopping:
                self._unfinished.append("forced to end: what was in flight got no answer")
                self._everything.cancel()
            else:
                stopping = True
                _log.info("%s: finishing what is in flight", signal.Signals(number).name)
                self._stop()

    def _registration(self, store_label: str) -> registrations.Registration:
        config = self._config
        return registrations.Registration(
            config.scope, config.mountpoint, store_label, os.getpid(), self._since_ns, __version__
        )


@asynccontextmanager
async def _control_socket(
    registration: registrations.Registration,
    serve: Callable[[trio.SocketListener], Awaitable[None]],
    nursery: trio.Nursery,
) -> AsyncIterator[None]:
    """Register the mount, and answer at its control socket with *serve*."""
    path = registrations.register(registration)
    try:
        nursery.start_soon(serve, control.listen(path))
        yield
    finally:
        registrations.unregister(registration.mountpoint)


def _go_on_ending() -> None:
    """Do nothing: what is left to do, storing and releasing, has its own time limits."""


async def keep_measuring(volume: Volume) -> None:
    """Ask the store for its room now and then, because statfs never does. A failure does not end the mount."""
    while True:
        await trio.sleep(_MEASURE_SECONDS)
        try:
            await volume.measure_room()
        except (StoreError, OSError) as error:
            _log.info("could not measure the store's room: %s", error)
