"""The default log of a scope, removed with the scope: who destroys a scope does not want what tells of it to stay.

Only the log at its default place, and what a rotation made of it (``FILE.1`` …), is removed. A log that the operator
chose with ``--log-file`` is theirs. Two stores may each have a scope of one name: these scopes share a log, so a log
that another process has open is never removed.
"""

import os
import re
from pathlib import Path

from vfsd.config import default_log_file
from vfsd.host.processes import PROC, link_target, open_files, processes


def remove_default_log(scope: str) -> Path | None:
    """Remove the default log of *scope*, of this user, with its rotated files. Return its path, or None.

    None means that there was none, or that it is in use. Raises OSError.
    """
    log = default_log_file(scope)
    files = [log, *_rotated(log)]
    present = [path for path in files if path.exists()]
    if not present or _is_in_use(log):
        return None
    for path in present:
        path.unlink(missing_ok=True)
    return log


def _rotated(log: Path) -> list[Path]:
    """Return the files that a rotation has made of *log*."""
    name = re.compile(re.escape(log.name) + r"\.[0-9]+")
    try:
        return [path for path in log.parent.iterdir() if name.fullmatch(path.name)]
    except FileNotFoundError:
        return []


def _is_in_use(log: Path) -> bool:
    """Return whether another process has *log* open: a daemon, or what reads it."""
    path = os.path.realpath(log)
    return any(link_target(link) == path for pid in processes() for link in open_files(PROC / str(pid)))
