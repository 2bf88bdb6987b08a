"""A writer: a process that runs random operations in its own directory until it is told to stop or the mount ends.

It is called as ``python -m tests.torture.writer DIRECTORY MODEL LOG SEED``. The end of its standard input tells it to
stop. It exits with 0, or with a traceback if it sees that the mount breaks a guarantee.

An operation may fail because the store is unavailable or full, or because the scope is lost. The writer then touches
the same files until this works. The mount must not allow it before the doubt is settled, so afterwards one comparison
must show the outcome.
"""

import errno
import os
import pickle
import random
import select
import sys
import time
from pathlib import Path

from tests.support.trees import stamp_of
from tests.torture.checker import check
from tests.torture.content import PartialWrite
from tests.torture.log import Log
from tests.torture.model import Model
from tests.torture.operation import Operation
from tests.torture.operation_chooser import OperationChooser
from tests.torture.operations import Rewrite
from tests.torture.possible_states import OperationInDoubt, apply, concerned

DAEMON_GONE = frozenset({errno.ENOTCONN, errno.ECONNABORTED})
"""Errors of system calls when the daemon ends or has ended."""

STORE_ERRORS = frozenset({errno.EIO, errno.ENOSPC, errno.EROFS})
"""Errors of changes while the store is unavailable or full, or when another mount has the scope."""

MISSING = frozenset({errno.ENOENT, errno.ENOTDIR})
_PAUSE_SECONDS = 0.02


class ScopeLost(Exception):
    """Another mount has claimed the scope, so this mount must never change anything again."""


class Writer:
    """Works in *directory* with the content of *model*, and writes to *log*."""

    def __init__(self, directory: bytes, model: Model, log: Log, seed: str) -> None:
        self._directory = directory
        self._model = model
        self._log = log
        self._rng = random.Random(seed)
        self._unsettled = False

    def work(self) -> None:
        """Run operations until told to stop or the mount ends. A broken guarantee raises OSError or AssertionError."""
        try:
            self._work()
        except OSError as error:
            if error.errno not in DAEMON_GONE:
                raise

    def _work(self) -> None:
        try:
            while not _told_to_stop():
                self._do(self._next())
        except ScopeLost:
            self._be_refused()

    def _next(self) -> Operation:
        return OperationChooser(self._model, self._rng).next()

    def _do(self, operation: Operation) -> None:
        self._log.begin(operation)
        steps = 0
        try:
            for _ in operation.run(self._directory):
                self._log.step()
                steps += 1
        except PartialWrite:
            self._recover(OperationInDoubt(operation, steps, errno.EIO))
        except OSError as error:
            if error.errno not in STORE_ERRORS:
                raise
            self._recover(OperationInDoubt(operation, steps, error.errno))
        else:
            self._log.acknowledge()
            apply(self._model, operation)
        self._record_stats()

    def _record_stats(self) -> None:
        for path in self._model.take_touched():
            self._log.stat_result(path, stamp_of(os.lstat(os.path.join(self._directory, path))))

    # --- after a failure

    def _recover(self, doubt: OperationInDoubt) -> None:
        """Wait until changes work again, find out the outcome of *doubt*, and continue from this state."""
        assert doubt.error is not None
        self._log.fail(doubt.error)
        emptied = isinstance(doubt.operation, Rewrite)  # by the open: the mount shows that before it is stored
        self._unsettled = doubt.error == errno.EIO or doubt.steps > 0 or emptied
        for path in concerned(self._model, doubt.operation):
            self._touch(os.path.join(self._directory, path))
        self._model, steps, _ = check(self._directory, self._model, doubt)
        self._log.settle(steps)
        self._unsettled = False

    def _touch(self, path: bytes) -> None:
        """Set the times of *path* as soon as that works. A missing path is not an error. Raises ScopeLost."""
        while True:
            try:
                os.utime(path, follow_symlinks=False)
            except OSError as error:
                if error.errno in MISSING:
                    return
                if error.errno == errno.EROFS:
                    raise ScopeLost from error
                if error.errno not in STORE_ERRORS:
                    raise
            else:
                return
            self._read_something()
            time.sleep(_PAUSE_SECONDS)  # attempts that fail at once would block all other requests

    def _read_something(self) -> None:
        """Read a file, which must work in any state of the store. Its name may be in doubt."""
        files = [path for path, node in self._model.walk() if node.is_regular]
        if files:
            try:
                with open(os.path.join(self._directory, self._rng.choice(files)), "rb") as file:
                    file.read()
            except OSError as error:
                if error.errno not in MISSING:
                    raise

    def _be_refused(self) -> None:
        """Try operations until told to stop: only reading may work."""
        while not _told_to_stop():
            operation = self._next()
            if not concerned(self._model, operation):
                continue
            self._log.refuse(self._refusal(operation))
            self._read_something()

    def _refusal(self, operation: Operation) -> int:
        """Return the error with which *operation* fails. In doubt the error may be another one."""
        try:
            for _ in operation.run(self._directory):
                raise AssertionError(f"acknowledged after the scope was lost: {operation}")
        except OSError as error:
            if error.errno is None or not (error.errno == errno.EROFS or self._unsettled) or error.errno in DAEMON_GONE:
                raise
            return error.errno
        raise AssertionError(f"no error and no change after the scope was lost: {operation}")


def _told_to_stop() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    """Run the writer that the command line describes."""
    directory, model, log, seed = sys.argv[1:]
    os.umask(0)
    Writer(os.fsencode(directory), pickle.loads(Path(model).read_bytes()), Log(Path(log)), seed).work()


if __name__ == "__main__":
    main()
