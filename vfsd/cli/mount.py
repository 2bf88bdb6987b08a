"""``vfsd mount``: parse the options, prepare the mountpoint, start the daemon, print what it reports.

To add an option of a mount: a field in :class:`vfsd.config.MountConfig`, and here an ``option`` and a parameter of
:func:`mount` that is passed on to that field. A field that gets no value, or a misspelt parameter, is an error of
mypy.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from vfsd.cli.completers import complete_directories, complete_files, complete_scopes
from vfsd.cli.help import Command, Option, Topic, option
from vfsd.cli.output import say
from vfsd.cli.parsing import (
    MOST,
    check_paths_outside,
    parse_fsync,
    parse_log_file,
    parse_mount_options,
    parse_names,
    parse_optional_size,
    parse_owner,
    parse_scope,
    parse_seconds,
    parse_seed,
    parse_size,
    parse_skill,
    parse_store,
)
from vfsd.cli.present_mount import check_alike, check_no_seeds, is_mounted, take_back
from vfsd.cli.progress import Progress, tell_created
from vfsd.cli.store_option import store_options
from vfsd.config import DirectoryMtime, MountConfig
from vfsd.daemon.process import run_detached, run_foreground
from vfsd.errors import MountpointError, UncleanEnd, VfsdError
from vfsd.host import mountpoint as mountpoints
from vfsd.host import registrations
from vfsd.seeds.sources import check_sources
from vfsd.store.url import with_absolute_path
from vfsd.tree.change import Limits

_OWN_OPTIONS = {"nonempty", "ro", "rw"}
"""Mount options that vfsd itself acts on. libfuse gets the others."""

_RESERVE_SECONDS = 5.0
_PAUSE_SECONDS = 0.05


class _Shorthand(Option):
    """A flag that means *value* for the parameter *of* another option, and has its place among them: the last one wins.

    If that option can be given several times, *append* is true.
    """

    def __init__(self, *arguments: Any, of: str, value: str, append: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **{**settings, "is_flag": True, "expose_value": False})
        self._action = {"dest": of, "const": value, "action": "append_const" if append else "store_const"}

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Make the parser take this option for the other."""
        parser.add_option(obj=self, opts=self.opts, **self._action)


@click.command(
    cls=Command,
    examples=[
        "vfsd mount mnt --scope run-42 --store sqlite:runs.db",
        "vfsd mount /mnt/run-42 --scope run-42 --allow-other --max-bytes 2G",
    ],
)
@click.argument("mountpoint", shell_complete=complete_directories)
@option(
    "--scope",
    metavar="SCOPE",
    required=True,
    shell_complete=complete_scopes,
    topic=Topic.SCOPE,
    help="The scope to mount: the files of one run.",
    more="A name has up to 200 letters, digits and `._@:+-`, and begins with a letter or a digit.",
)
@store_options
@option(
    "-f",
    "--foreground",
    is_flag=True,
    help="Stay in the foreground and log to stderr.",
    more="For systemd and containers.",
)
@option(
    "-p",
    "--parents",
    is_flag=True,
    topic=Topic.PLACE,
    help="Create the directories above the mountpoint too.",
    more="Without it only the mountpoint itself is created if it is missing. A mount that does not come up leaves none"
    " of them behind.",
)
@option(
    "-o",
    "options",
    multiple=True,
    metavar="OPT,OPT",
    topic=Topic.PLACE,
    help="Mount options: ro, allow_other, noexec, …",
    more="Also `suid`, `dev`, `nonempty`, and every other option that libfuse knows, except"
    " `fsname`, `subtype` and `max_read`. Of options that contradict each other the last one wins, as in mount(8)."
    " `auto_unmount` goes with neither `suid` nor `dev`.",
)
@option(
    "--read-only",
    cls=_Shorthand,
    of="options",
    value="ro",
    append=True,
    topic=Topic.PLACE,
    help="Mount for reading, without claiming the scope.",
    more="The same as `-o ro` at its place among the options.",
)
@option(
    "--allow-other",
    cls=_Shorthand,
    of="options",
    value="allow_other",
    append=True,
    topic=Topic.PLACE,
    help="Let other users in; the kernel checks permissions as always.",
    more="The same as `-o allow_other` at its place among the options.",
)
@option("--owner", metavar="UID:GID", topic=Topic.PLACE, help="Show every file as owned by this user and group.")
@option(
    "--xattr",
    is_flag=True,
    topic=Topic.PLACE,
    help="Support extended attributes (costs a request per write).",
    more="Off by default, because the kernel then asks for one attribute before every write. A value has up to 65,536"
    " bytes, as everywhere on Linux. All names and values of one file share 131,072 bytes, and every change of the"
    " file stores them again.",
)
@option("--must-exist", is_flag=True, topic=Topic.SCOPE, help="Refuse to create a missing scope.")
@option(
    "--take-over",
    is_flag=True,
    topic=Topic.SCOPE,
    help="Claim the scope even from a living owner, which is then fenced.",
)
@option(
    "--allow-eviction",
    is_flag=True,
    topic=Topic.DURABILITY,
    help="Accept a Redis that may drop data when memory is short.",
    more="Its `maxmemory-policy` decides that.",
)
@option(
    "--salvage",
    is_flag=True,
    topic=Topic.SCOPE,
    help="Mount the undamaged part of a damaged scope, for reading.",
)
@option(
    "--store-timeout",
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    type=float,
    topic=Topic.DURABILITY,
    help="Longest a change may take; then EIO.",
)
@option(
    "--max-bytes",
    metavar="SIZE",
    topic=Topic.LIMITS,
    help="Most bytes of content, as in 2G; 0: no limit. Kept with the scope.",
    more="Beyond it: ENOSPC. `df` shows it; 0 removes it. A SIZE is a number of bytes, or one with K, M, G or T for"
    " powers of 1024.",
)
@option(
    "--max-files",
    metavar="NUMBER",
    type=click.IntRange(0, MOST),
    topic=Topic.LIMITS,
    help="Most files of all kinds; 0: no limit. Kept with the scope.",
    more="The root directory counts as a file here. Beyond it: ENOSPC. `df` shows it; 0 removes it.",
)
@option(
    "--max-file-bytes",
    metavar="SIZE",
    topic=Topic.LIMITS,
    help="Largest file; 0: no limit. Kept with the scope.",
    more="Beyond it: EFBIG. 0 removes it.",
)
@option(
    "--max-memory",
    metavar="SIZE",
    default="0",
    topic=Topic.LIMITS,
    help="Most memory for the daemon, 0: no limit; then ENOSPC.",
    more="It is resident memory. ENOSPC is for what grows. What was removed makes room at once. Requests that are under"
    " way when the limit is reached may exceed it by their own size.",
)
@option(
    "--fsync",
    metavar="MODE",
    default="none",
    topic=Topic.DURABILITY,
    help="fsync waits for (Redis): none, wait:N, waitaof.",
    more="This is beyond the commit: `wait:N` is for N replicas, `waitaof` for Redis's own disk (Redis 7.2, Valkey)."
    " Not for SQLite. The default is `none`.",
)
@option(
    "--skill",
    "skills",
    multiple=True,
    metavar="DIR[:DEST]",
    shell_complete=complete_directories,
    topic=Topic.SEEDS,
    help="Show a skill at /skills/NAME or DEST; not stored.",
    more="DIR is a directory with a `SKILL.md`. Repeatable. See docs/skills.md.",
)
@option(
    "--seed",
    "seeds",
    multiple=True,
    metavar="SRC:DEST",
    shell_complete=complete_files,
    topic=Topic.SEEDS,
    help="Show a file or a tree at DEST; not stored.",
    more="Repeatable.",
)
@option(
    "--seed-policy",
    type=click.Choice(["seed", "keep"]),
    default="seed",
    show_default=True,
    topic=Topic.SEEDS,
    help="What to show if a seed and a stored file have the same path: the seed, or the stored file.",
)
@option(
    "--directory-mtime",
    type=click.Choice([kind.value for kind in DirectoryMtime]),
    default=DirectoryMtime.SKILLS.value,
    show_default=True,
    topic=Topic.SEEDS,
    help="Directories whose mtime changes with content anywhere below them.",
    more="Those of skills and above, none, or all. See docs/skills.md#directory-times.",
)
@option(
    "--loose-references",
    metavar="NAME,…",
    default="references,scripts,assets",
    show_default=True,
    topic=Topic.SEEDS,
    help="Directories of seeded skills that are found at the root too, if nothing else is there.",
    more="See docs/skills.md#references-at-the-root.",
)
@option(
    "--no-loose-references",
    cls=_Shorthand,
    of="loose_references",
    value="",
    topic=Topic.SEEDS,
    help="Find none of them at the root.",
)
@option(
    "--log-file",
    metavar="FILE",
    shell_complete=complete_files,
    topic=Topic.LOGGING,
    help="Log there. Default: /var/log/vfsd/SCOPE.log; stderr with -f.",
    more="For a user other than root the default is below `$XDG_STATE_HOME`.",
)
@option(
    "--log-max",
    metavar="SIZE",
    default="16M",
    show_default=True,
    topic=Topic.LOGGING,
    help="Size at which a log file becomes FILE.1, and a new one begins; 0: no limit.",
    more="So a log has at most about twice this size.",
)
@option("-v", "--verbose", "verbosity", count=True, topic=Topic.LOGGING, help="Log more.")
@option("--debug", is_flag=True, topic=Topic.LOGGING, help="Log every request.")
def mount(  # noqa: PLR0913 (click passes one argument for each option; only as typed parameters can mypy check them)
    *,
    mountpoint: str,
    scope: str,
    store: str | None,
    store_password_file: str | None,
    foreground: bool,
    parents: bool,
    options: tuple[str, ...],
    owner: str | None,
    xattr: bool,
    must_exist: bool,
    take_over: bool,
    allow_eviction: bool,
    salvage: bool,
    store_timeout: float,
    max_bytes: str | None,
    max_files: int | None,
    max_file_bytes: str | None,
    max_memory: str,
    fsync: str,
    skills: tuple[str, ...],
    seeds: tuple[str, ...],
    seed_policy: str,
    directory_mtime: str,
    loose_references: str,
    log_file: str | None,
    log_max: str,
    verbosity: int,
    debug: bool,
) -> None:
    """Mount a scope at MOUNTPOINT and return when the mount answers."""
    url = parse_store(store, store_password_file)
    names = parse_mount_options(options)
    config = MountConfig(
        mountpoint=mountpoints.absolute(mountpoint),
        scope=parse_scope(scope),
        store=with_absolute_path(url, mountpoints.absolute),
        options=tuple(name for name in names if name not in _OWN_OPTIONS),
        read_only="ro" in names or salvage,
        owner=parse_owner(owner),
        xattr=xattr,
        must_exist=must_exist,
        take_over=take_over,
        allow_eviction=allow_eviction,
        salvage=salvage,
        store_timeout=parse_seconds("--store-timeout", store_timeout),
        fsync=parse_fsync(fsync, url),
        limits=Limits(
            parse_optional_size("--max-bytes", max_bytes),
            max_files,
            parse_optional_size("--max-file-bytes", max_file_bytes),
        ),
        max_memory=parse_size("--max-memory", max_memory),
        skills=tuple(map(parse_skill, skills)),
        seeds=tuple(map(parse_seed, seeds)),
        keep_stored=seed_policy == "keep",
        directory_mtime=DirectoryMtime(directory_mtime),
        loose_references=parse_names("--loose-references", loose_references),
        log_file=parse_log_file(log_file),
        log_max=parse_size("--log-max", log_max),
        verbosity=verbosity,
        debug=debug,
    )
    check_paths_outside(config, detached=not foreground)
    check_sources(config.skills, config.seeds)
    _mount(config, nonempty="nonempty" in names, parents=parents, foreground=foreground)


def _mount(config: MountConfig, *, nonempty: bool, parents: bool, foreground: bool) -> None:
    """Mount as *config* says; print a line and return if the scope is already mounted there. Raises VfsdError."""
    with _reserve(config.mountpoint) as reservation:
        if is_mounted(config):
            check_alike(config, foreground=foreground)
            check_no_seeds(config)
            say(f"scope {config.scope} is already mounted at {config.mountpoint}")
            return
        take_back(config)
        for note in mountpoints.clean_up(config.mountpoint):
            say(note, err=True)
        with _mountpoint(config.mountpoint, nonempty=nonempty, parents=parents) as created:
            if foreground:
                tell_created(created)
                run_foreground(config, reservation)
                return
            with Progress(created) as progress:
                run_detached(config, reservation, progress.show)


@contextmanager
def _mountpoint(path: str, *, nonempty: bool, parents: bool) -> Iterator[list[str]]:
    """Create the mountpoint *path* if it is missing, and yield what was created. If nothing gets mounted, remove it."""
    created = mountpoints.create(path, parents=parents)
    try:
        mountpoints.check_usable(path, nonempty=nonempty)
        yield created
    except VfsdError as error:
        if not isinstance(error, UncleanEnd):  # that one was mounted
            mountpoints.remove(created)
        raise


def _reserve(mountpoint: str) -> registrations.Reservation:
    """Reserve *mountpoint*, and wait up to 5 s for another command that mounts there. Raises MountpointError."""
    deadline = time.monotonic() + _RESERVE_SECONDS
    while (reservation := registrations.reserve(mountpoint)) is None:
        if time.monotonic() > deadline:
            raise MountpointError(f"{mountpoint}: another command is mounting there; try again when it has finished")
        time.sleep(_PAUSE_SECONDS)
    return reservation
