"""From the text of arguments and options to values: one function for each kind. They raise UsageError.

Click's own types are used where they are enough. The rest is here, so that a wrong argument ends every command in the
same way: one line, and exit status 2.
"""

import os
import re

from vfsd.config import MountConfig, SeedSpec, runtime_dir, store_password, store_url
from vfsd.daemon.process import log_file_of
from vfsd.errors import UsageError
from vfsd.host import mountpoint as mountpoints
from vfsd.store.base import Fsync
from vfsd.store.url import (
    can_wait_for_replicas,
    checked,
    has_password,
    hidden,
    local_path,
    takes_password,
    with_password,
)
from vfsd.tree.draft import NAME_MAX

MOST = 2**63 - 1
"""Largest number that every store can keep."""

_LONGEST_WAIT = 86_400.0
"""Largest value of a time limit, in seconds."""
_NO_ID = 2**32 - 1
"""Not the number of a user or group: it means "leave it as it is" (:manpage:`chown(2)`)."""

_OPPOSITES = {"rw": "ro", "async": "sync", "allow_root": "allow_other"}
"""Options whose opposite has another name, by that name."""
_NOT_NEGATED = {"nonempty"}
_AUTO_UNMOUNT = "auto_unmount"
_NEVER_WITH_AUTO_UNMOUNT = ("suid", "dev")
_SET_BY_VFSD = {
    "fsname": "it finds its mounts by it",
    "subtype": "it finds its mounts by it",
    "max_read": "libfuse ends a mount whose two sides differ",
}
"""Options that nobody may give, and why vfsd sets them itself."""

_SIZE = re.compile(r"([0-9]{1,20})([KMGT]?)(?:I?B)?")
_REPLICAS = re.compile(r"[1-9][0-9]{0,3}")
_SCOPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,199}")


def parse_store(option: str | None, password_file: str | None) -> str:
    """Return the URL of the store that ``--store`` *option* or the environment names, with its password.

    A password in the URL is more specific than ``$VFSD_STORE_PASSWORD``, but contradicts *password_file*.
    """
    url, password = checked(store_url(option)), store_password(password_file)
    if password_file is not None and (has_password(url) or not takes_password(url)):
        why = "has a password already" if has_password(url) else "takes no password"
        raise UsageError(f"--store-password-file {password_file}: the store {hidden(url)} {why}; leave one out")
    if password is None or has_password(url) or not takes_password(url):
        return url
    return with_password(url, password)


def parse_given(name: str, text: str) -> str:
    """Return *text*, the value of the argument *name*. Empty text is probably a shell variable that is not set."""
    if not text:
        raise UsageError(f"{name} is empty: the variable that should have its value may be unset")
    return text


def parse_scope(name: str) -> str:
    """Return *name* if it is a valid name of a scope."""
    if not _SCOPE.fullmatch(name):
        raise UsageError(
            f"scope '{name}': a name is up to 200 letters, digits and ._@:+- and begins with a letter or a digit"
        )
    return name


def parse_size(option: str, text: str) -> int:
    """Return the number of bytes that *text* means for *option*. K, M, G and T are powers of 1024."""
    match = _SIZE.fullmatch(text.strip().upper())
    if match is None:
        raise UsageError(f"{option} {text}: not a size: write a number of bytes, or one with K, M, G or T, as in 512M")
    count = int(match[1]) << (10 * "KMGT".index(match[2]) + 10 if match[2] else 0)
    if count > MOST:
        raise UsageError(f"{option} {text}: too large: the most is {MOST} bytes")
    return count


def parse_optional_size(option: str, text: str | None) -> int | None:
    """Return the number of bytes that *text* means for *option*, or None if the option is not given."""
    return None if text is None else parse_size(option, text)


def parse_seconds(option: str, seconds: float) -> float:
    """Return *seconds* if *option* may have this value."""
    if not 0 < seconds <= _LONGEST_WAIT:  # also refuses nan
        raise UsageError(f"{option} {seconds:g}: expected seconds, more than 0 and at most {_LONGEST_WAIT:g}")
    return seconds


def parse_fsync(text: str, store: str) -> Fsync:
    """Return what ``--fsync`` *text* means for *store*: ``none``, ``wait:N`` (replicas) or ``waitaof``."""
    fsync = _fsync(text)
    if fsync != Fsync() and not can_wait_for_replicas(store):
        scheme = store.partition(":")[0]
        raise UsageError(f"--fsync {text}: only a Redis store can do that; {scheme}: has nothing more to wait for")
    return fsync


def _fsync(text: str) -> Fsync:
    if text == "none":
        return Fsync()
    if text == "waitaof":
        return Fsync(aof=True)
    kind, _, count = text.partition(":")
    if kind == "wait" and _REPLICAS.fullmatch(count):
        return Fsync(replicas=int(count))
    raise UsageError(f"--fsync {text}: expected none, wait:N with N replicas, or waitaof")


def parse_owner(text: str | None) -> tuple[int, int] | None:
    """Return the uid and gid that ``UID:GID`` means, or None if the option is not given."""
    if text is None:
        return None
    uid, colon, gid = text.partition(":")
    if not (colon and _is_id(uid) and _is_id(gid)):
        raise UsageError(f"--owner {text}: expected UID:GID in numbers, as in 1000:1000")
    return int(uid), int(gid)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) < _NO_ID


def parse_names(option: str, text: str) -> tuple[bytes, ...]:
    """Return the names that *text*, a list with commas, has: each is one component of a path. Empty text is none."""
    names = tuple(os.fsencode(name) for name in text.split(",")) if text else ()
    for name in names:
        if name in {b"", b".", b".."} or b"/" in name or len(name) > NAME_MAX:
            raise UsageError(f"{option} {text}: expected names of directories, as in references,scripts")
    return names


def parse_mount_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the mount options that were given with ``-o``, each of which is a list with commas.

    Of options that contradict each other only the last one is left, as :manpage:`mount(8)` has it: libfuse gets them as
    a set, which has no order. Raises UsageError for an option that vfsd sets itself.
    """
    last: dict[str, str] = {}
    for option in (name for group in options for name in group.split(",") if name):
        subject = _subject(option)
        if subject in _SET_BY_VFSD:
            raise UsageError(f"-o {option}: vfsd sets {subject} itself, because {_SET_BY_VFSD[subject]}: leave it out")
        last.pop(subject, None)
        last[subject] = option
    for option in _NEVER_WITH_AUTO_UNMOUNT if _AUTO_UNMOUNT in last else ():
        if option in last.values():
            raise UsageError(f"-o {option}: with {_AUTO_UNMOUNT} fusermount3 mounts, without {option}: leave one out")
    return tuple(last.values())


def _subject(option: str) -> str:
    """Return what *option* decides. ``suid`` and ``nosuid`` decide the same, and so do ``key=1`` and ``key=2``."""
    name = option.partition("=")[0]
    return _OPPOSITES.get(name, name if name in _NOT_NEGATED else name.removeprefix("no"))


def parse_log_file(path: str | None) -> str | None:
    """Return *path* as an absolute path, because a daemon has another working directory."""
    return None if path is None else os.path.abspath(parse_given("--log-file", path))  # noqa: PTH100 (a Path would follow links)


def parse_skill(text: str) -> SeedSpec:
    """Return what ``DIR[:DEST]`` means: DEST follows the last colon."""
    source, colon, dest = text.rpartition(":")
    return _seed_spec(source if colon else dest, dest if colon else "", text)


def parse_seed(text: str) -> SeedSpec:
    """Return what ``SRC:DEST`` means: DEST follows the last colon."""
    source, colon, dest = text.rpartition(":")
    if not (colon and dest):
        raise UsageError(f"--seed {text}: expected SRC:DEST, as in ./notes.md:/notes/seed.md")
    return _seed_spec(source, dest, text)


def _seed_spec(source: str, dest: str, text: str) -> SeedSpec:
    if not source:
        raise UsageError(f"'{text}' names no file or directory: write the path to seed before the colon")
    if os.path.lexists(text) and not os.path.lexists(source):
        raise UsageError(f"{text}: DEST follows the last colon, and there is no {source}: write {text}:DEST")
    return SeedSpec(os.path.abspath(source), dest or None)  # noqa: PTH100 (a Path would follow links)


def check_paths_outside(config: MountConfig, *, detached: bool) -> None:
    """Refuse a store, log file or runtime directory at or below the mountpoint.

    The daemon would reach it through its own mount, and wait for itself forever.
    """
    paths = {"registrations": os.fspath(runtime_dir()), "store": local_path(config.store)}
    paths["log"] = log_file_of(config) if detached else config.log_file
    for name, path in paths.items():
        if path and mountpoints.lies_within(path, config.mountpoint):
            raise UsageError(f"{path}: the {name} of a mount cannot lie at or below its mountpoint {config.mountpoint}")
