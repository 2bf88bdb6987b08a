"""The life of one mount: check → claim → hydrate → seed → mount → ready → serve → drain → unmount → release.

Each step undoes itself on the way out, whatever ends it; a signal is such an end at every step. The daemon never
touches its own mountpoint once it is mounted: it would wait for itself.
"""

import errno
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import trio

from vfsd import __version__, clock
from vfsd.config import MountConfig
from vfsd.control import server as control
from vfsd.control.handlers.files import file_operations
from vfsd.control.handlers.scope import scope_operations
from vfsd.control.handlers.seeds import seed_operations
from vfsd.daemon.notify import StartupReporter
from vfsd.daemon.task_dump import describe_tasks
from vfsd.errors import FsError, ScopeMissing, StoreError, UncleanEnd, VfsdError
from vfsd.files.read import FileReader
from vfsd.files.resolve import PathResolver
from vfsd.files.seed import Seeding
from vfsd.files.write import FileWriter
from vfsd.fuse.session import FuseSession, check_device
from vfsd.host import registrations
from vfsd.scope.hydrate import hydrate
from vfsd.scope.memory_limit import MemoryLimit
from vfsd.scope.volume import Volume
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.sources import SeedSource, read_sources
from vfsd.store.base import Claim, ClaimTerms, Store, StoreOptions
from vfsd.store.owner import this_process
from vfsd.store.url import open_store
from vfsd.tree.change import Change
from vfsd.tree.tree import Tree

_log = logging.getLogger(__name__)

_MEASURE_SECONDS = 30.0
_SAMPLE_SECONDS = 0.5
_RELEASE_SECONDS = 0.8
"""Longest to wait for the store when giving the scope up: after that its lease ends by itself."""


class Daemon:
    """Serves one mount as *config* says, telling *herald* how far it has come."""

    def __init__(self, config: MountConfig, herald: StartupReporter) -> None:
        self._config = config
        self._herald = herald
        self._since_ns = clock.now()
        self._memory = MemoryLimit(config.max_memory)
        self._unfinished: list[str] = []
        self._keeping = trio.CancelScope()
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
        sources = await trio.to_thread.run_sync(read_sources, self._config.skills, self._config.seeds)
        options = StoreOptions(self._config.store_timeout, self._config.allow_eviction, self._config.fsync)
        check_device()
        async with AsyncExitStack() as stack:
            store = open_store(self._config.store, options)
            stack.push_async_callback(store.aclose)
            with self._everything:
                await self._live_with(store, stack, sources)

    async def _live_with(self, store: Store, stack: AsyncExitStack, sources: list[SeedSource]) -> None:
        """Live on *store*, with *sources* seeded from the start; what outlasts a forced end is left to *stack*."""
        async with trio.open_nursery() as nursery:
            for warning in await store.check():
                self._herald.warn(warning)
            claim = await self._claim(store, stack)
            if claim is not None:
                nursery.start_soon(self._keep, store, claim)
            volume = await self._hydrated(store, claim, nursery)
            await self._seeding(volume).start_with(sources)
            sources.clear()  # the tree has it all; this would hold what is replaced
            await self._serve(volume, claim)
            await self._drain(volume)
            nursery.cancel_scope.cancel()

    async def _claim(self, store: Store, stack: AsyncExitStack) -> Claim | None:
        """Claim the scope, unless it is only to be read, and see that it will be released."""
        config = self._config
        if config.read_only:
            return None
        terms = ClaimTerms(create=not config.must_exist, take_over=config.take_over, limits=config.limits)
        with trio.CancelScope(shield=True):  # a claim of which nobody has heard could not be released
            claim = await store.claim(config.scope, this_process(config.mountpoint), terms)
        stack.push_async_callback(self._release, store, claim)
        if claim.created:
            self._herald.note(f"created scope {config.scope} in {store.label}")
        return claim

    async def _keep(self, store: Store, claim: Claim) -> None:
        """Keep *claim* alive, until it is given up."""
        with self._keeping:
            await store.keep(claim)

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
            await volume.changes.behind.drain()
        except VfsdError as error:
            self._unfinished.append(f"a truncation could not be stored, the old content stays: {error}")

    async def _hydrated(self, store: Store, claim: Claim | None, nursery: trio.Nursery) -> Volume:
        scope = self._config.scope
        tree = await hydrate(store, scope, self._herald.progress, salvage=self._config.salvage)
        volume = Volume(tree, store, claim, nursery, self._memory)
        volume.changes.times = DirectoryTimes(tree, self._config.directory_mtime)
        if not tree.inodes:
            if claim is None:
                raise ScopeMissing(f"scope {scope} in {store.label} is empty: mount it once for writing")
            await volume.found(os.geteuid(), os.getegid())
        await volume.measure_room()
        self._memory.sample(tree)
        return volume

    async def _serve(self, volume: Volume, claim: Claim | None) -> None:
        """Mount, say so, and answer requests until told to stop or unmounted from outside."""
        session = FuseSession(volume, self._config)
        session.mount()
        try:
            async with trio.open_nursery() as beside:
                beside.start_soon(keep_measuring, volume)
                if self._config.max_memory:
                    beside.start_soon(self._keep_sampling, volume.tree)
                async with _control_socket(
                    self._registration(volume.store), self._handlers(volume, claim, session), beside
                ):
                    beside.start_soon(self._announce, volume)
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

    async def _announce(self, volume: Volume) -> None:
        config, seeded = self._config, volume.changes.seeds.files
        text = f"scope {config.scope} mounted at {config.mountpoint}, {volume.files} files"
        self._herald.ready(f"{text}, {seeded} seeded" if seeded else text)

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

    def _registration(self, store: Store) -> registrations.Registration:
        config = self._config
        return registrations.Registration(
            config.scope, config.mountpoint, store.label, os.getpid(), self._since_ns, __version__
        )

    def _seeding(self, volume: Volume) -> Seeding:
        paths = PathResolver(volume.tree, os.fsencode(self._config.mountpoint))
        return Seeding(volume, paths, keep=self._config.keep_stored)

    def _handlers(self, volume: Volume, claim: Claim | None, session: FuseSession) -> dict[str, control.ControlHandler]:
        """Return what the control socket answers."""
        config = self._config
        paths = PathResolver(volume.tree, os.fsencode(config.mountpoint))
        reader, files = FileReader(volume.tree, paths, config.owner), FileWriter(volume, paths, session.tell)
        return {
            **scope_operations(config, volume, partial(self._drop, volume, claim), session.stop),
            **file_operations(reader, files),
            **seed_operations(self._seeding(volume)),
        }

    async def _drop(self, volume: Volume, claim: Claim | None) -> None:
        """Destroy all that is stored of the scope. Raises FsError (EROFS) for a read-only mount, StoreError.

        It begins with a commit of nothing: who has lost the scope to another owner is refused. Once the scope is given
        up there is no way back: if the store then fails, the mount stays readable, and this may be asked for again.
        """
        if claim is None:
            raise FsError(errno.EROFS)
        if not self._keeping.cancel_called:
            await volume.store.commit(claim, Change((), grows=False))
        volume.changes.retire()
        self._keeping.cancel()
        await volume.store.release(claim)
        await volume.store.drop(claim.scope)


@asynccontextmanager
async def _control_socket(
    registration: registrations.Registration, handlers: dict[str, control.ControlHandler], nursery: trio.Nursery
) -> AsyncIterator[None]:
    """Register the mount and answer at its control socket."""
    path = registrations.register(registration)
    try:
        nursery.start_soon(control.serve, control.listen(path), handlers)
        yield
    finally:
        registrations.unregister(registration.mountpoint)


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
