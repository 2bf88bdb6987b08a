"""One writer: a process that does random operations in a directory of its own until the mount is gone.

Called as ``python -m tests.torture.writer DIRECTORY MODEL LOG SEED``. It exits with 0 once the daemon has gone, one
operation in doubt; any other failure of an operation is a failure of the mount, and ends it with a traceback.
"""

import errno
import os
import pickle
import random
import sys
from pathlib import Path

from tests.support.trees import stamp_of
from tests.torture.choose import Chooser
from tests.torture.content import CutShort
from tests.torture.log import Log, apply
from tests.torture.model import Model
from tests.torture.operations import Operation

GONE = frozenset({errno.ENOTCONN, errno.ECONNABORTED})
"""What system calls answer when the daemon ends meanwhile, or has ended."""


class Writer:
    """Works in *directory*, whose content *model* describes, and tells *log*."""

    def __init__(self, directory: bytes, model: Model, log: Log, seed: str) -> None:
        self._directory = directory
        self._model = model
        self._log = log
        self._chooser = Chooser(model, random.Random(seed))

    def work(self) -> None:
        """Do operations until the mount is gone. Raises OSError for any other failure."""
        try:
            while True:
                self._do(self._chooser.next())
        except CutShort:
            return
        except OSError as error:
            if error.errno not in GONE:
                raise

    def _do(self, operation: Operation) -> None:
        self._log.intend(operation)
        operation.run(self._directory)
        self._log.acknowledge()
        apply(operation, self._model)
        for path in self._model.take_touched():
            seen = os.lstat(os.path.join(self._directory, path))
            self._log.saw(path, stamp_of(seen))


def main() -> None:
    """Run as the head of this module says."""
    directory, model, log, seed = sys.argv[1:]
    os.umask(0)
    Writer(os.fsencode(directory), pickle.loads(Path(model).read_bytes()), Log(Path(log)), seed).work()


if __name__ == "__main__":
    main()
