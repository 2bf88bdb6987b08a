"""One writer: a process that does random operations in a directory of its own, until told to stop or the mount is gone.

Called as ``python -m tests.torture.writer DIRECTORY MODEL LOG SEED``; the end of its standard input tells it to stop.
It exits with 0 unless the mount has broken a promise that a writer can see: then with a traceback.

An operation may fail, for want of the store, of room, or of the scope. A writer then does what concerns the same files
until the mount lets it, which it may not do before what is in doubt has been settled; then one look must tell.
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
from tests.torture.choose import Chooser
from tests.torture.content import CutShort
from tests.torture.doubt import TransactionInDoubt, apply, concerned
from tests.torture.log import Log
from tests.torture.model import Model
from tests.torture.operation import Operation

GONE = frozenset({errno.ENOTCONN, errno.ECONNABORTED})
"""What system calls answer when the daemon ends meanwhile, or has ended."""

FAILING = frozenset({errno.EIO, errno.ENOSPC, errno.EROFS})
"""What changes answer while the store is away, full, or somebody else's."""

VANISHED = frozenset({errno.ENOENT, errno.ENOTDIR})
_PAUSE_SECONDS = 0.02


class ScopeLost(Exception):
    """The scope has been claimed by another mount: this one may never change anything again."""


class Writer:
    """Works in *directory*, whose content *model* describes, and tells *log*."""

    def __init__(self, directory: bytes, model: Model, log: Log, seed: str) -> None:
        self._directory = directory
        self._model = model
        self._log = log
        self._rng = random.Random(seed)
        self._unsettled = False

    def work(self) -> None:
        """Do operations until told to stop or the mount is gone. Raises OSError, AssertionError for broken promises."""
        try:
            self._work()
        except OSError as error:
            if error.errno not in GONE:
                raise

    def _work(self) -> None:
        try:
            while not _told_to_stop():
                self._do(self._next())
        except ScopeLost:
            self._be_refused()

    def _next(self) -> Operation:
        return Chooser(self._model, self._rng).next()

    def _do(self, operation: Operation) -> None:
        self._log.intend(operation)
        steps = 0
        try:
            for _ in operation.run(self._directory):
                self._log.step()
                steps += 1
        except CutShort:
            self._recover(TransactionInDoubt(operation, steps, errno.EIO))
        except OSError as error:
            if error.errno not in FAILING:
                raise
            self._recover(TransactionInDoubt(operation, steps, error.errno))
        else:
            self._log.acknowledge()
            apply(self._model, operation)
        self._look()

    def _look(self) -> None:
        for path in self._model.take_touched():
            self._log.saw(path, stamp_of(os.lstat(os.path.join(self._directory, path))))

    # --- after a failure

    def _recover(self, doubt: TransactionInDoubt) -> None:
        """Wait until changes work again, find out what has come of *doubt*, and go on from there."""
        assert doubt.error is not None
        self._log.fail(doubt.error)
        self._unsettled = doubt.error == errno.EIO or doubt.steps > 0
        for path in concerned(self._model, doubt.operation):
            self._touch(os.path.join(self._directory, path))
        self._model, steps, _ = check(self._directory, self._model, doubt)
        self._log.settle(steps)
        self._unsettled = False

    def _touch(self, path: bytes) -> None:
        """Set the times of *path*, as soon as that works; it need not be there. Raises ScopeLost."""
        while True:
            try:
                os.utime(path, follow_symlinks=False)
            except OSError as error:
                if error.errno in VANISHED:
                    return
                if error.errno == errno.EROFS:
                    raise ScopeLost from error
                if error.errno not in FAILING:
                    raise
            else:
                return
            self._read_something()
            time.sleep(_PAUSE_SECONDS)  # between tries that fail at once: else they would drown out all other requests

    def _read_something(self) -> None:
        """Read a file: that never fails, whatever becomes of the store. Its name may be in doubt."""
        files = [path for path, node in self._model.walk() if node.is_regular]
        if files:
            try:
                with open(os.path.join(self._directory, self._rng.choice(files)), "rb") as file:
                    file.read()
            except OSError as error:
                if error.errno not in VANISHED:
                    raise

    def _be_refused(self) -> None:
        """Go on trying until told to stop: nothing may work, but reading."""
        while not _told_to_stop():
            operation = self._next()
            if not concerned(self._model, operation):
                continue
            self._log.refuse(self._refusal(operation))
            self._read_something()

    def _refusal(self, operation: Operation) -> int:
        """Return the error with which *operation* fails; where a name is in doubt, the kernel may be the one."""
        try:
            for _ in operation.run(self._directory):
                raise AssertionError(f"acknowledged after the scope was lost: {operation}")
        except OSError as error:
            if error.errno is None or not (error.errno == errno.EROFS or self._unsettled) or error.errno in GONE:
                raise
            return error.errno
        raise AssertionError(f"did nothing after the scope was lost, and without an error: {operation}")


def _told_to_stop() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> None:
    """Run as the head of this module says."""
    directory, model, log, seed = sys.argv[1:]
    os.umask(0)
    Writer(os.fsencode(directory), pickle.loads(Path(model).read_bytes()), Log(Path(log)), seed).work()


if __name__ == "__main__":
    main()
