"""The format of the daemon's log: one record begins a line, and nothing that it quotes can look like another record."""

import logging

from vfsd.printable import printable

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_CONTINUED = "\n  "


class LogFormatter(logging.Formatter):
    """Formats records with printable text only. Further lines, as of a traceback, are indented."""

    def __init__(self) -> None:
        super().__init__(_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as text."""
        return _CONTINUED.join(map(printable, super().format(record).split("\n")))
