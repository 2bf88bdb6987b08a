"""Helpers for tests of the command line: the results of commands, and daemons that ``vfsd mount`` has started."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.mounted import Mounted, run_vfsd, wait_until
from vfsd.errors import EXIT_STATUS, StoreUnreachable
from vfsd.host import mountpoint as mountpoints

Result = subprocess.CompletedProcess[str]


def failure(result: Result, status: int) -> str:
    """Return the single error line of a command that failed with *status*, without its ``vfsd:`` prefix."""
    assert result.returncode == status, f"{result.returncode}: {result.stderr}"
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("vfsd: ")
    return line.removeprefix("vfsd: ")


def success(result: Result) -> str:
    """Return the output of a command that succeeded."""
    assert result.returncode == 0, f"{result.returncode}: {result.stderr}"
    return result.stdout


class Detached:
    """A mount in the background: the command returns, and the daemon continues to run."""

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
        """Return the process id of the daemon, as ``vfsd status`` shows it."""
        (entry,) = statuses(self._mounted, self.path)
        pid: int = entry["pid"]
        return pid


@contextmanager
def detached(mounted: Mounted) -> Iterator[Detached]:
    """Yield a starter for one daemon in the background, and end the daemon afterwards. *mounted* is not started yet."""
    starter = Detached(mounted)
    try:
        yield starter
    finally:
        pids = [entry["pid"] for entry in statuses(mounted, mounted.path) if "pid" in entry]
        mounted.clean_up()
        for pid in pids:
            wait_until(lambda pid=pid: not is_alive(pid), f"daemon {pid} to end")  # type: ignore[misc]


def is_alive(pid: int) -> bool:
    """Whether process *pid* runs. A zombie does not."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except FileNotFoundError:
        return False
    return after_name.split()[0] not in "ZX"


def statuses(mounted: Mounted, *paths: Path) -> list[dict[str, Any]]:
    """Return what ``vfsd status --json`` shows for the mounts at *paths*. The machine may have other mounts."""
    found = json.loads(success(mounted.vfsd("status", "--json")))
    return [entry for entry in found if entry["mountpoint"] in map(str, paths)]


def summaries(mounted: Mounted, *options: str) -> list[dict[str, Any]]:
    """Return what ``vfsd scopes --json`` with *options* shows of the store of *mounted*. It may not exist yet."""
    listed = mounted.vfsd("scopes", "--json", *options)
    return [] if listed.returncode == EXIT_STATUS[StoreUnreachable] else list(json.loads(success(listed)))


def offer_store(package: Path, scheme: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the text of a *module* with ``open_store`` in the directory *package*, as the store of URL *scheme*."""
    about = package / f"{scheme}-1.dist-info"
    about.mkdir(parents=True)
    (package / f"{scheme}.py").write_text(module)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {scheme}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[vfsd.stores]\n{scheme} = {scheme}:open_store\n")
    monkeypatch.setenv("PYTHONPATH", os.fspath(package))


def mounts_at(path: Path) -> list[mountpoints.Mount]:
    """Return all mounts at *path*. There may be several, on top of each other."""
    return [mount for mount in mountpoints.mounts() if mount.mountpoint == str(path)]


def mount_options(path: Path) -> tuple[str, str, set[str]]:
    """Return type, source and options of the mount at *path*, as the kernel shows them."""
    lines = os.fsdecode(Path("/proc/mounts").read_bytes()).split("\n")  # other mounts may have any name
    source, _, fstype, options, *_ = next(line.split(" ") for line in lines if f" {path} " in line)
    return fstype, source, set(options.split(","))
