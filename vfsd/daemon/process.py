"""The process of a daemon: detaching, and the exit status.

A detached daemon is forked before trio is imported, because an event loop must not exist across a fork. The command
that started it reads a pipe until the mount answers.
"""

import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vfsd.config import MountConfig, default_log_file
from vfsd.daemon.log import start_logging
from vfsd.daemon.log_file import create_log_file
from vfsd.daemon.notify import PipeReporter, StartupReporter
from vfsd.daemon.scope_log import remove_default_log
from vfsd.errors import DaemonFailed, Interrupted, VfsdError, exit_status_of
from vfsd.host.daemons import has_ended
from vfsd.host.registrations import Reservation

_END_SECONDS = 10.0
"""Longest wait until a daemon that has reported its failure has ended."""

_BUG = 1
"""The exit status of a daemon that a bug ended. Only its log says where."""

_log = logging.getLogger(__name__)


def log_file_of(config: MountConfig) -> str:
    """Return the log file of a detached daemon."""
    return config.log_file or os.fspath(default_log_file(config.scope))


def run_foreground(config: MountConfig, reservation: Reservation) -> None:
    """Serve the mount in this process, and log to stderr or the log file. Raises VfsdError."""
    if config.log_file:
        create_log_file(config.log_file, parents=False)
    start_logging(config, config.log_file, take_streams=False)
    try:
        _serve(config, StartupReporter(reservation.end))
    except VfsdError:
        raise
    except Exception as error:  # noqa: BLE001 (Python would print its text, which may quote content)
        _log.critical("the daemon ended by a bug", exc_info=True)
        raise DaemonFailed(_bug(error), _BUG) from None


def run_detached(config: MountConfig, reservation: Reservation, on_message: Callable[[dict[str, Any]], None]) -> None:
    """Start a daemon, and return when its mount answers. Pass each message of the daemon to *on_message*.

    The daemon takes over the *reservation* of the mountpoint, and ends it when the mount answers. The reservation lasts
    until then even if this command is killed. Raises DaemonFailed with the daemon's own message, VfsdError if the
    daemon ends without one, Interrupted for Ctrl-C: then the daemon has ended.
    """
    log_file = log_file_of(config)
    is_new = create_log_file(log_file, parents=config.log_file is None)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become_daemon(config, reservation, writing, log_file)
    os.close(writing)
    reservation.forget()
    try:
        with os.fdopen(reading, "rb") as pipe:
            _wait_until_ready(pipe, on_message, log_file)
    except (DaemonFailed, Interrupted) as failed:
        if is_new and config.log_file is None and exit_status_of(failed) != _BUG:  # the command says all that it says
            remove_default_log(config.scope)
        raise
    finally:
        os.waitpid(child, 0)


def _wait_until_ready(pipe: Iterator[bytes], on_message: Callable[[dict[str, Any]], None], log_file: str) -> None:
    daemon = None
    try:
        for line in pipe:
            message = json.loads(line)
            daemon = message.get("pid", daemon)
            if _tells_the_end(message, on_message):
                return
    except DaemonFailed:
        _await_end(daemon)
        raise
    except KeyboardInterrupt:
        _end_early(daemon, pipe)
        _await_end(daemon)
        raise Interrupted("interrupted: nothing is mounted") from None
    raise VfsdError(f"the daemon ended before its mount was ready; its log is {log_file}")


def _tells_the_end(message: dict[str, Any], on_message: Callable[[dict[str, Any]], None]) -> bool:
    """Pass *message* on, and return whether it is the last one. Raises DaemonFailed if it says so."""
    if "error" in message:
        raise DaemonFailed(message["error"], message["status"])
    if "pid" not in message:
        on_message(message)
    return "ready" in message


def _end_early(daemon: int | None, pipe: Iterator[bytes]) -> None:
    """End *daemon* as SIGTERM does, and wait until it has undone what it had begun: it closes *pipe* then."""
    _terminate(daemon)
    for line in pipe:
        _terminate(json.loads(line).get("pid"))


def _await_end(daemon: int | None) -> None:
    """Wait until *daemon* has ended: until then it has its log open."""
    if daemon is None:
        return
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(daemon)
        has_ended(descriptor, _END_SECONDS)
        os.close(descriptor)


def _terminate(daemon: int | None) -> None:
    if daemon is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(daemon, signal.SIGTERM)


def _become_daemon(config: MountConfig, reservation: Reservation, pipe: int, log_file: str) -> None:
    """Give up session, terminal, working directory and inherited descriptors, and serve. Does not return."""
    os.setsid()
    if os.fork():  # the child of a session leader is no leader, and so never gets a terminal again
        os._exit(0)
    status = _BUG
    try:
        os.chdir("/")
        _close_all_but(pipe, reservation.descriptor)
        _leave_terminal()
        start_logging(config, log_file, take_streams=True)
        reporter = PipeReporter(pipe, reservation.end)
        status = _serve_and_report(config, reporter)
        if status == 0 and reporter.has_destroyed and config.log_file is None:
            logging.shutdown()  # nothing opens the log again
            remove_default_log(config.scope)
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


def _leave_terminal() -> None:
    """Connect stdin, stdout and stderr to /dev/null. The log takes the last two over."""
    sys.stdout.flush()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


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
        reporter.failed(_bug(error), _BUG)
        return _BUG
    return 0


def _bug(error: BaseException) -> str:
    return f"a bug ended the daemon: {type(error).__name__}; the log has the traceback"


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
