"""System calls during a fault: each may fail, or block until the fault ends. Its outcome is a word."""

import errno
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from tests.support.mounted import PATIENCE, Mounted, wait_until
from vfsd.client.connection import ask

DONE = "done"

STORE_LOST = r"lost the store .* during a commit"
STORE_AWAY = r"; trying again"
STORE_BACK = r"the store .* answers again"
DOUBT_SETTLED = r"a change that was answered with an error turned out to be stored"
OUTAGE = (STORE_LOST, STORE_AWAY, STORE_BACK, DOUBT_SETTLED)
"""Warnings of a mount whose store was unavailable for some time."""


def outcome(call: Callable[[], object]) -> str:
    """Return :data:`DONE`, or the name of the errno if *call* failed."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return DONE


class PendingCall:
    """A call in a separate thread. It may block until a fault ends."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._future: Future[str] = Future()
        threading.Thread(target=self._run, args=(call,), daemon=True).start()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            self._future.set_result(outcome(call))
        except BaseException as error:  # noqa: BLE001 (raised again in outcome)
            self._future.set_exception(error)

    @property
    def has_returned(self) -> bool:
        """Whether the call has returned."""
        return self._future.done()

    def outcome(self) -> str:
        """Wait for the end of the call, and return its outcome."""
        return self._future.result(PATIENCE)


def write(path: Path, content: bytes, offset: int = 0) -> None:
    """Write into an existing file with one write(2). Raises OSError."""
    fd = os.open(path, os.O_WRONLY)
    try:
        assert os.pwrite(fd, content, offset) == len(content)
    finally:
        os.close(fd)


def wait_until_writable(directory: Path) -> None:
    """Return when changes in *directory* work again."""
    probe = directory / "probe"
    wait_until(lambda: outcome(probe.mkdir) == DONE, "writing to work again")
    probe.rmdir()


def wait_for_log(mounted: Mounted, text: str) -> None:
    """Return when the daemon has logged *text*."""
    wait_until(lambda: text in mounted.log.read_text(), f"{text!r} in the log")


def pending_changes(mounted: Mounted) -> int:
    """Return how many changes wait for the store, as the control socket of the daemon shows."""
    for path in Path(mounted.environment["VFSD_RUNTIME_DIR"]).glob("*.json"):
        if json.loads(path.read_text())["mountpoint"] == os.fspath(mounted.path):
            return int(ask(path.with_suffix(".sock"), "info", timeout=PATIENCE)["pending"])
    raise AssertionError(f"no daemon is registered for {mounted.path}")
