"""What people type, and what they should see: commands beside a mount, and daemons that were started by one."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.mounted import Mounted, run_vfsd, wait_until
from vfsd.host import mountpoint as mountpoints

Result = subprocess.CompletedProcess[str]


def failure(result: Result, status: int) -> str:
    """Return the one line that a command said when it failed with *status*, and only with that."""
    assert result.returncode == status, f"{result.returncode}: {result.stderr}"
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("vfsd: ")
    return line.removeprefix("vfsd: ")


def success(result: Result) -> str:
    """Return what a command printed that should do well."""
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    return result.stdout


class Detached:
    """A mount as people start it: the command returns, the daemon stays."""

    def __init__(self, mounted: Mounted) -> None:
        self._mounted = mounted

    @property
    def path(self) -> Path:
        return self._mounted.path

    def mount(self, *options: str, env: dict[str, str] | None = None) -> Result:
        """Run ``vfsd mount``, without --foreground."""
        mounted = self._mounted
        arguments = [str(mounted.path), "--scope", mounted.scope, "--log-file", str(mounted.log), *options]
        return run_vfsd("mount", *arguments, env=env or mounted.environment)

    def pid(self) -> int:
        """Return the daemon's process, as ``vfsd status`` tells it."""
        (entry,) = statuses(self._mounted, self.path)
        pid: int = entry["pid"]
        return pid


@contextmanager
def detached(mounted: Mounted) -> Iterator[Detached]:
    """Give a place for one detached daemon, which has ended afterwards. *mounted* must not have been started."""
    starter = Detached(mounted)
    try:
        yield starter
    finally:
        pids = [entry["pid"] for entry in statuses(mounted, mounted.path) if "pid" in entry]
        mounted.clean_up()
        for pid in pids:
            wait_until(lambda pid=pid: not lives(pid), f"the end of daemon {pid}")  # type: ignore[misc]


def lives(pid: int) -> bool:
    """Whether process *pid* is there; one that has ended, and which nobody has asked about, is not."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        return False
    return after_name.split()[0] not in "ZX"


def statuses(mounted: Mounted, *paths: Path) -> list[dict[str, Any]]:
    """Return what ``vfsd status --json`` says of the mounts at *paths*; the machine may have others."""
    found = json.loads(success(mounted.vfsd("status", "--json")))
    return [entry for entry in found if entry["mountpoint"] in map(str, paths)]


def mounts_at(path: Path) -> list[mountpoints.Mount]:
    """Return all mounts at *path*, however they are stacked."""
    return [mount for mount in mountpoints.mounts() if mount.mountpoint == str(path)]


def mount_options(path: Path) -> tuple[str, str, set[str]]:
    """Return type, source and options of the mount at *path*, as the kernel tells them."""
    line = next(line for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == str(path))
    source, _, fstype, options, *_ = line.split()
    return fstype, source, set(options.split(","))
