"""``vfsd mount``: parse, see that the place is free, start the daemon, say what happened."""

import os
import sys
import time
from types import TracebackType
from typing import Any, Self

import click

from vfsd.cli.given import check_outside, chosen_store, seed_given, skill_given
from vfsd.config import MOST, STORE_TIMEOUT, DirectoryMtime, MountConfig, checked_scope, fsync, seconds, size
from vfsd.daemon.process import run_detached, run_foreground
from vfsd.errors import MountpointError, UsageError
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.seeds.sources import check_sources
from vfsd.store.base import Fsync
from vfsd.store.url import can_wait_for_replicas, hidden, with_absolute_path
from vfsd.tree.change import Limits

_OURS = {"nonempty", "ro", "rw"}
_BAR_AFTER_SECONDS = 0.5
_RESERVE_SECONDS, _PAUSE = 5.0, 0.05
_NO_ID = 2**32 - 1


@click.command()
@click.argument("mountpoint")
@click.option("--scope", required=True, help="The scope to mount: the files of one run.")
@click.option("--store", help="Where scopes live: redis://, rediss://, unix://, sqlite:PATH. Default: $VFSD_STORE.")
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground and log to stderr.")
@click.option("-o", "options", multiple=True, metavar="OPT,OPT", help="Mount options: ro, allow_other, noexec, …")
@click.option("--read-only", is_flag=True, help="Mount for reading, without claiming the scope.")
@click.option("--allow-other", is_flag=True, help="Let other users in; permissions are checked as always.")
@click.option("--owner", metavar="UID:GID", help="Show every file as owned so.")
@click.option("--xattr", is_flag=True, help="Support extended attributes (costs a request per write).")
@click.option("--must-exist", is_flag=True, help="Refuse to create a missing scope.")
@click.option("--take-over", is_flag=True, help="Claim the scope even from a living owner, which is fenced.")
@click.option("--allow-eviction", is_flag=True, help="Accept a Redis that may drop data when memory is short.")
@click.option("--salvage", is_flag=True, help="Mount what is sound of a damaged scope, for reading.")
@click.option(
    "--store-timeout", default=STORE_TIMEOUT, show_default=True, type=float, help="Longest a change may take (s)."
)
@click.option("--max-bytes", metavar="SIZE", help="Most content the scope may hold, as in 2G; 0: no limit. Kept.")
@click.option(
    "--max-files", metavar="N", type=click.IntRange(0, MOST), help="Most files of all kinds; 0: no limit. Kept."
)
@click.option("--max-file-bytes", metavar="SIZE", help="Largest file; 0: no limit. Kept.")
@click.option("--max-memory", metavar="SIZE", default="0", help="Most memory for the daemon; then ENOSPC.")
@click.option(
    "--fsync", "fsync_mode", metavar="MODE", default="none", help="fsync waits for (Redis): none, wait:N, waitaof."
)
@click.option(
    "--skill", "skills", multiple=True, metavar="DIR[:DEST]", help="Show a skill at /skills/NAME or DEST; not stored."
)
@click.option("--seed", "seeds", multiple=True, metavar="SRC:DEST", help="Show a file or a tree at DEST; not stored.")
@click.option(
    "--seed-policy",
    type=click.Choice(["seed", "keep"]),
    default="seed",
    show_default=True,
    help="What is shown where a stored file and a seed meet: the seed, or what was stored.",
)
@click.option(
    "--directory-mtime",
    type=click.Choice([kind.value for kind in DirectoryMtime]),
    default=DirectoryMtime.SKILLS.value,
    show_default=True,
    help="Directories whose mtime moves with content below them.",
)
@click.option(
    "--loose-references/--no-loose-references",
    default=True,
    help="Find references/x.md at the root if one seeded skill has it.",
)
@click.option("--log-file", metavar="FILE", help="Log there. Default: /var/log/vfsd/SCOPE.log, stderr with -f.")
@click.option("-v", "--verbose", "verbosity", count=True, help="Log more.")
@click.option("--debug", is_flag=True, help="Log every request.")
def mount(mountpoint: str, store: str | None, foreground: bool, **given: Any) -> None:
    """Mount a scope at MOUNTPOINT and return when it answers."""
    config = _config(mountpoints.absolute(mountpoint), chosen_store(store), **given)
    check_outside(config, detached=not foreground)
    check_sources(config.skills, config.seeds)
    with _reserved(config.mountpoint) as reservation:
        if _is_mounted(config):
            _check_no_seeds(config)
            click.echo(f"scope {config.scope} is already mounted at {config.mountpoint}")
            return
        for note in mountpoints.make_ready(config.mountpoint, nonempty="nonempty" in _names(given["options"])):
            click.echo(note, err=True)
        _run(config, reservation, foreground=foreground)


def _run(config: MountConfig, reservation: registrations.Reservation, *, foreground: bool) -> None:
    if foreground:
        run_foreground(config, reservation)
        return
    with _Progress() as progress:
        run_detached(config, reservation, progress.hear)


def _reserved(mountpoint: str) -> registrations.Reservation:
    """Reserve *mountpoint*, waiting a little for who is making a mount there. Raises MountpointError."""
    deadline = time.monotonic() + _RESERVE_SECONDS
    while (reservation := registrations.reserve(mountpoint)) is None:
        if time.monotonic() > deadline:
            raise MountpointError(f"{mountpoint}: somebody is making a mount there; try again when that is done")
        time.sleep(_PAUSE)
    return reservation


def _names(options: tuple[str, ...]) -> set[str]:
    return {name for group in options for name in group.split(",") if name}


def _config(mountpoint: str, store: str, **given: Any) -> MountConfig:
    names = _names(given.pop("options"))
    if given.pop("allow_other"):
        names.add("allow_other")
    return MountConfig(
        mountpoint=mountpoint,
        scope=checked_scope(given.pop("scope")),
        store=with_absolute_path(store, mountpoints.absolute),
        options=frozenset(names - _OURS),
        read_only=given.pop("read_only") or "ro" in names or given["salvage"],
        owner=_owner(given.pop("owner")),
        limits=Limits(_size(given.pop("max_bytes")), given.pop("max_files"), _size(given.pop("max_file_bytes"))),
        fsync=_fsync(given.pop("fsync_mode"), store),
        store_timeout=seconds("--store-timeout", given.pop("store_timeout")),
        log_file=_absolute_log(given.pop("log_file")),
        max_memory=size(given.pop("max_memory")),
        directory_mtime=DirectoryMtime(given.pop("directory_mtime")),
        skills=tuple(map(skill_given, given.pop("skills"))),
        seeds=tuple(map(seed_given, given.pop("seeds"))),
        keep_stored=given.pop("seed_policy") == "keep",
        **given,
    )


def _absolute_log(path: str | None) -> str | None:
    """Return *path* absolute: a daemon has another working directory."""
    return None if path is None else os.path.abspath(path)  # noqa: PTH100 (a Path would follow links)


def _fsync(text: str, store: str) -> Fsync:
    wanted = fsync(text)
    if wanted != Fsync() and not can_wait_for_replicas(store):
        kind = store.partition(":")[0]
        raise UsageError(f"--fsync {text}: only a Redis can be waited for so; {kind}: has nothing more to wait for")
    return wanted


def _size(text: str | None) -> int | None:
    return None if text is None else size(text)


def _owner(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    uid, colon, gid = text.partition(":")
    if not (colon and _is_id(uid) and _is_id(gid)):
        raise UsageError(f"--owner {text}: expected UID:GID in numbers, as in 1000:1000")
    return int(uid), int(gid)


def _is_id(text: str) -> bool:
    """Whether *text* is a user's or a group's number: 32 bits, of which the largest means "leave it"."""
    return text.isascii() and text.isdigit() and int(text) < _NO_ID


def _is_mounted(config: MountConfig) -> bool:
    """Whether this very scope is mounted there and answers. Raises MountpointError if it is another store's."""
    present = mountpoints.mount_at(config.mountpoint)
    if (
        present is None
        or present.scope != config.scope
        or mountpoints.health(config.mountpoint) is not mountpoints.Health.ALIVE
    ):
        return False
    registered = registrations.registered(config.mountpoint)
    if registered is not None and registered.store != hidden(config.store):
        raise MountpointError(f"{config.mountpoint}: scope {config.scope} of {registered.store} is mounted there")
    return True


def _check_no_seeds(config: MountConfig) -> None:
    """Refuse to say of a mount that was there before that it shows what *config* names. Raises MountpointError."""
    if config.skills or config.seeds:
        raise MountpointError(
            f"{config.mountpoint}: scope {config.scope} is already mounted there, and was not seeded now: "
            "use 'vfsd skill add' and 'vfsd seed'"
        )


class _Progress:
    """Shows what a starting daemon tells: notes as lines, progress as a bar once it takes longer than a moment."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bar: Any = None
        self._done = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_bar()

    def hear(self, message: dict[str, Any]) -> None:
        """Show one message."""
        if "done" in message:
            self._show(message["done"], message["total"])
            return
        self._end_bar()
        text = next(message[kind] for kind in ("note", "warning", "ready") if kind in message)
        click.echo(text if "ready" in message else f"vfsd: {text}", err="ready" not in message)

    def _show(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._started < _BAR_AFTER_SECONDS or not sys.stderr.isatty():
                return
            self._bar = click.progressbar(length=total, label="hydrating", file=sys.stderr)
            self._bar.__enter__()
        self._bar.length = total
        self._bar.update(done - self._done)
        self._done = done

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None
