"""The process of a daemon: logging, detaching, and the exit status.

A detached daemon is forked before trio is imported, because an event loop must not exist across a fork. The command
that started it reads a pipe until the mount answers.
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
from vfsd.daemon.log_format import LogFormatter
from vfsd.daemon.notify import PipeReporter, StartupReporter
from vfsd.errors import DaemonFailed, UsageError, VfsdError, exit_status_of
from vfsd.host.registrations import Reservation

_log = logging.getLogger(__name__)

_LEVELS = (logging.INFO, logging.DEBUG)


def log_file_of(config: MountConfig) -> str:
    """Return the log file of a detached daemon."""
    return config.log_file or os.fspath(default_log_file(config.scope))


def run_foreground(config: MountConfig, reservation: Reservation) -> None:
    """Serve the mount in this process, and log to stderr or the log file. Raises VfsdError."""
    if config.log_file:
        _create_log_file(config.log_file)
    _start_logging(config, config.log_file)
    _serve(config, StartupReporter(reservation.end))


def run_detached(config: MountConfig, reservation: Reservation, on_message: Callable[[dict[str, Any]], None]) -> None:
    """Start a daemon, and return when its mount answers. Pass each message of the daemon to *on_message*.

    The daemon takes over the *reservation* of the mountpoint, and ends it when the mount answers. The reservation lasts
    until then even if this command is interrupted. Raises DaemonFailed with the daemon's own message, VfsdError if the
    daemon ends without one.
    """
    log_file = log_file_of(config)
    _create_log_file(log_file)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(config, reservation, writing, log_file)
    os.close(writing)
    reservation.forget()
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        _wait_until_ready(pipe, on_message, log_file)


def _create_log_file(path: str) -> None:
    """Create the log file now, while an error can still be printed. Raises UsageError."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with Path(path).open("ab"):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write the log file {path}: {error.strerror}; choose another with --log-file"
        ) from None


def _wait_until_ready(pipe: Iterator[bytes], on_message: Callable[[dict[str, Any]], None], log_file: str) -> None:
    for line in pipe:
        message = json.loads(line)
        if "error" in message:
            raise DaemonFailed(message["error"], message["status"])
        on_message(message)
        if "ready" in message:
            return
    raise VfsdError(f"the daemon ended before its mount was ready; its log is {log_file}")


def _become_daemon(config: MountConfig, reservation: Reservation, pipe: int, log_file: str) -> None:
    """Give up session, terminal, working directory and inherited descriptors, and serve. Does not return."""
    os.setsid()
    if os.fork():  # the child of a session leader is no leader, and so never gets a terminal again
        os._exit(0)
    status = 1
    try:
        os.chdir("/")
        _close_all_but(pipe, reservation.descriptor)
        _redirect_standard_streams(log_file)
        _start_logging(config, log_file)
        status = _serve_and_report(config, PipeReporter(pipe, reservation.end))
    finally:
        reservation.end()
        logging.shutdown()
        os._exit(status)


def _close_all_but(*kept: int) -> None:
    """Close inherited descriptors: a pipe or lock of the caller must not stay open as long as the daemon lives."""
    inherited = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()} - {0, 1, 2, *kept}
    for descriptor in inherited:
        with contextlib.suppress(OSError):  # the descriptor that read the directory is closed already
            os.close(descriptor)


def _redirect_standard_streams(log_file: str) -> None:
    """Connect stdin to /dev/null, and stdout and stderr to the log: a crash and libfuse write to them."""
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
    sys.stdout.flush()
    for descriptor, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, descriptor)


def _serve_and_report(config: MountConfig, reporter: PipeReporter) -> int:
    """Serve the mount, report a failure to *reporter*, and return the exit status."""
    try:
        _serve(config, reporter)
    except VfsdError as error:
        _log.error("%s", error)
        reporter.failed(str(error), exit_status_of(error))
        return exit_status_of(error)
    except BaseException as error:  # noqa: BLE001 (nothing catches it later, and the command must print it)
        _log.critical("the daemon ended by a bug", exc_info=True)
        reporter.failed(f"a bug: {error!r}; the log has the traceback", 1)
        return 1
    return 0


def _serve(config: MountConfig, reporter: StartupReporter) -> None:
    import trio  # noqa: PLC0415 (only after the fork)

    from vfsd.daemon.lifecycle import Daemon  # noqa: PLC0415 (imports trio)

    try:
        trio.run(Daemon(config, reporter).run)
    except BaseExceptionGroup as group:
        foreseen = group.subgroup(VfsdError)
        raise (group if foreseen is None else _first(foreseen)) from None


def _first(group: BaseExceptionGroup[VfsdError]) -> VfsdError:
    """Return the first failure in *group*, which may contain groups."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def _start_logging(config: MountConfig, log_file: str | None) -> None:
    handler = logging.handlers.WatchedFileHandler(log_file) if log_file else logging.StreamHandler()
    handler.setFormatter(LogFormatter())
    logging.basicConfig(level=_LEVELS[min(config.verbosity, 1)], handlers=[handler])
    logging.getLogger("vfsd.fuse.trace").setLevel(logging.DEBUG if config.debug else logging.INFO)
    logging.getLogger("pyfuse3").setLevel(logging.INFO)
