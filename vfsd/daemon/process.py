"""Starting a daemon's process: logging, detaching, and taking its failure to an exit status.

It forks before trio is imported, since an event loop must not cross a fork; the command that started it waits on a
pipe until the mount answers.
"""

import contextlib
import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vfsd.config import MountConfig, default_log_file
from vfsd.daemon.notify import PipeReporter, StartupReporter
from vfsd.errors import UsageError, VfsdError, exit_status_of
from vfsd.host.registrations import Reservation

_log = logging.getLogger(__name__)

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LEVELS = (logging.INFO, logging.DEBUG)


def log_file_of(config: MountConfig) -> str:
    """Return where a detached daemon logs."""
    return config.log_file or os.fspath(default_log_file(config.scope))


def run_foreground(config: MountConfig, reservation: Reservation) -> None:
    """Serve the mount in this process, logging to stderr or the log file. Raises VfsdError."""
    if config.log_file:
        _make_log_file(config.log_file)
    _start_logging(config, config.log_file)
    _serve(config, StartupReporter(reservation.end))


def run_detached(config: MountConfig, reservation: Reservation, hear: Callable[[dict[str, Any]], None]) -> None:
    """Start a daemon and return when its mount answers, passing on to *hear* what it tells meanwhile.

    *reservation* of the mountpoint goes over to the daemon, which ends it when the mount is there; until then it lasts
    even if this command is interrupted. Raises VfsdError with the daemon's own words if it fails.
    """
    log_file = log_file_of(config)
    _make_log_file(log_file)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(config, reservation, writing, log_file)
    os.close(writing)
    reservation.forget()
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        _listen(pipe, hear, log_file)


def _make_log_file(path: str) -> None:
    """See that a log can be written, while the error still has somewhere to go."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("ab"):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write the log file {path}: {error.strerror}; choose another with --log-file"
        ) from None


class Reported(VfsdError):
    """A daemon's failure as it reported it, with the exit status for it."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def _listen(pipe: Iterator[bytes], hear: Callable[[dict[str, Any]], None], log_file: str) -> None:
    for line in pipe:
        message = json.loads(line)
        if "error" in message:
            raise Reported(message["error"], message["status"])
        hear(message)
        if "ready" in message:
            return
    raise VfsdError(f"the daemon ended before its mount was ready; its log is {log_file}")


def _become_daemon(config: MountConfig, reservation: Reservation, pipe: int, log_file: str) -> None:
    """Leave session, terminal, working directory and open files behind, and serve. Does not return."""
    os.setsid()
    if os.fork():
        os._exit(0)
    status = 1
    try:
        os.chdir("/")
        _close_all_but(pipe, reservation.descriptor)
        _redirect_standard_streams(log_file)
        _start_logging(config, log_file)
        status = _report(config, PipeReporter(pipe, reservation.end))
    finally:
        reservation.end()
        logging.shutdown()
        os._exit(status)


def _close_all_but(*kept: int) -> None:
    """Close what was inherited: a pipe or a lock of whoever ran the command must not last as long as the daemon."""
    inherited = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()} - {0, 1, 2, *kept}
    for descriptor in inherited:
        with contextlib.suppress(OSError):  # the one by which the directory was read is closed already
            os.close(descriptor)


def _redirect_standard_streams(log_file: str) -> None:
    """Read nothing, and let whatever writes to a standard stream (a crash, libfuse) end in the log."""
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    sys.stdout.flush()
    for descriptor, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, descriptor)


def _report(config: MountConfig, herald: PipeReporter) -> int:
    """Serve, and return the exit status; what ends it early is told to the herald, word for word."""
    try:
        _serve(config, herald)
    except VfsdError as error:
        _log.error("%s", error)
        herald.failed(str(error), exit_status_of(error))
        return exit_status_of(error)
    except BaseException as error:  # noqa: BLE001 (last stop: the command must hear of it)
        _log.critical("the daemon ended by a bug", exc_info=True)
        herald.failed(f"a bug: {error!r}; the log has the traceback", 1)
        return 1
    return 0


def _serve(config: MountConfig, herald: StartupReporter) -> None:
    import trio  # noqa: PLC0415 (not before the fork)

    from vfsd.daemon.lifecycle import Daemon  # noqa: PLC0415 (the same)

    try:
        trio.run(Daemon(config, herald).run)
    except BaseExceptionGroup as group:
        foreseen = group.subgroup(VfsdError)
        raise (group if foreseen is None else _first(foreseen)) from None


def _first(group: BaseExceptionGroup[VfsdError]) -> VfsdError:
    """Return the first failure of those that ended a daemon's tasks together."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _start_logging(config: MountConfig, log_file: str | None) -> None:
    handler = logging.handlers.WatchedFileHandler(log_file) if log_file else logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.basicConfig(level=_LEVELS[min(config.verbosity, 1)], handlers=[handler])
    logging.getLogger("vfsd.fuse.trace").setLevel(logging.DEBUG if config.debug else logging.INFO)
    logging.getLogger("pyfuse3").setLevel(logging.INFO)
