"""The collector of reference cycles: no request leaves a cycle, and no collection looks at all files.

The daemon reports by a signal what its collector has found, because tests never serve a mount in their own process.
"""

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from vfsd import connect

_REPORT = """
import gc, json, os, signal

sizes = []
found = 0


def watch(phase, info):
    global found
    if phase == "start":
        young = range(info["generation"] + 1)
        sizes.append(sum(len(gc.get_objects(generation)) for generation in young))
    else:
        found += info["collected"] + info["uncollectable"]


def report(*_):
    gc.unfreeze()
    gc.collect()
    text = json.dumps({"found": found, "sizes": sizes[:-1]})
    sizes.clear()
    draft = os.environ["REPORT"] + ".draft"
    with open(draft, "w") as file:
        file.write(text)
    os.rename(draft, os.environ["REPORT"])


gc.callbacks.insert(0, watch)
signal.signal(signal.SIGUSR2, report)
"""

_LOOKED_AT_MOST = 40_000
"""Objects in one collection, which takes some milliseconds. A file is six objects."""


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mounted:
    """Return a mount whose daemon reports what its collector does."""
    (tmp_path / "sitecustomize.py").write_text(_REPORT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("REPORT", str(tmp_path / "report"))
    mounted = mount(redis_server.url, "--xattr")
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    return mounted


def _report(mounted: Mounted, tmp_path: Path) -> dict[str, Any]:
    """Return how many objects in cycles the collector has *found* so far, and at how many objects it looked."""
    path = tmp_path / "report"
    path.unlink(missing_ok=True)
    os.kill(mounted.pid, signal.SIGUSR2)
    wait_until(path.exists, "the report of the daemon")
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def _names(top: Path, number: int) -> None:
    directory = top / f"directory {number}"
    directory.mkdir()
    (directory / "a").write_bytes(b"content")
    (directory / "a").rename(directory / "b")
    os.link(directory / "b", directory / "c")
    os.setxattr(directory / "b", "user.name", b"value")
    (directory / "link").symlink_to("b")
    assert sorted(os.listdir(directory)) == ["b", "c", "link"]
    assert (directory / "link").read_bytes() == b"content"
    for name in ("b", "c", "link"):
        (directory / name).unlink()
    directory.rmdir()


def _failures(top: Path, number: int) -> None:
    (top / "there").mkdir(exist_ok=True)
    for call in (
        (top / "none" / str(number)).stat,
        (top / "there").mkdir,
        (top / "there").unlink,
        (top / ("n" * 256)).touch,
        partial(os.getxattr, top, "user.none"),
        partial(os.truncate, top / "there", 5),
        partial((top / "there").rename, top / "there" / "below"),
    ):
        with suppress(OSError):
            call()


def _control_clients(top: Path, number: int) -> None:
    with connect(top) as vfs:
        vfs.write_file(f"by the socket {number % 3}", b"content")
        with suppress(OSError):
            vfs.read_file("none")


REQUESTS: dict[str, Callable[[Path, int], None]] = {
    "names": _names,
    "failures": _failures,
    "control clients": _control_clients,
}


@pytest.mark.parametrize("requests", REQUESTS.values(), ids=REQUESTS)
def test_requests_leave_no_cycles(mounted: Mounted, tmp_path: Path, requests: Callable[[Path, int], None]) -> None:
    rounds = 100
    for number in range(5):
        requests(mounted.path, number)
    before = _report(mounted, tmp_path)["found"]
    for number in range(rounds):
        requests(mounted.path, number)
    found = _report(mounted, tmp_path)["found"] - before
    assert found < rounds, f"{found} objects in cycles after {rounds} rounds"


def test_no_collection_looks_at_all_files(mounted: Mounted, tmp_path: Path) -> None:
    _report(mounted, tmp_path)  # the start is over
    for directory in range(10):
        (mounted.path / str(directory)).mkdir()
        for number in range(1_000):
            (mounted.path / str(directory) / str(number)).touch()
    sizes = _report(mounted, tmp_path)["sizes"]
    assert sizes, "there was no collection"
    assert max(sizes) < _LOOKED_AT_MOST
