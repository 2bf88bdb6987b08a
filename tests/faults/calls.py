"""System calls that may fail, or may take until a fault ends: what came of them, as a word."""

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

LOST = r"lost the store .* during a commit"
AWAY = r"; trying again"
BACK = r"the store .* answers again"
SETTLED = r"a change that was answered with an error turned out to be stored"
OUTAGE = (LOST, AWAY, BACK, SETTLED)
"""Warnings of a mount whose store was away for a while."""


def outcome(call: Callable[[], object]) -> str:
    """Return :data:`DONE`, or the name of the errno that *call* failed with."""
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return DONE


class Pending:
    """A call in a thread of its own, which may have to wait for the end of a fault."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._future: Future[str] = Future()
        threading.Thread(target=self._run, args=(call,), daemon=True).start()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            self._future.set_result(outcome(call))
        except BaseException as error:  # noqa: BLE001 (handed on to whoever asks)
            self._future.set_exception(error)

    @property
    def is_over(self) -> bool:
        """Whether the call has returned."""
        return self._future.done()

    def outcome(self) -> str:
        """Wait for the call, and return what came of it."""
        return self._future.result(PATIENCE)


def write(path: Path, content: bytes, offset: int = 0) -> None:
    """Write into a file that is there, by one write(2). Raises OSError."""
    fd = os.open(path, os.O_WRONLY)
    try:
        assert os.pwrite(fd, content, offset) == len(content)
    finally:
        os.close(fd)


def wait_until_writable(directory: Path) -> None:
    """Return when changes in *directory* work again by themselves."""
    probe = directory / "probe"
    wait_until(lambda: outcome(probe.mkdir) == DONE, "writing to work again")
    probe.rmdir()


def wait_for_log(mounted: Mounted, text: str) -> None:
    """Return when the daemon has logged *text*."""
    wait_until(lambda: text in mounted.log.read_text(), f"{text!r} in the log")


def pending(mounted: Mounted) -> int:
    """Return how many changes wait for the store, as the daemon says at its control socket."""
    for path in Path(mounted.environment["VFSD_RUNTIME_DIR"]).glob("*.json"):
        if json.loads(path.read_text())["mountpoint"] == os.fspath(mounted.path):
            return int(ask(path.with_suffix(".sock"), "info", timeout=PATIENCE)["pending"])
    raise AssertionError(f"nothing is registered for {mounted.path}")
