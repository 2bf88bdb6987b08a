"""Times on a mount: in order over all its inodes, never ahead of the clock, and what programs that compare them do."""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mounted import Mounted, MountFactory, mounting
from tests.support.servers import RedisServer
from tests.support.syscalls import UTIME_NOW, UTIME_OMIT, utimensat
from vfsd import connect

REWRITES, STEPS, CHAINS, ATTEMPTS = 1_500, 400, 5, 20
SECOND = 10**9

_SHIFTED = """
import os, time

real, path = time.time_ns, os.environ["CLOCK_OFFSET"]


def shifted():
    with open(path) as file:
        return real() + int(file.read() or 0)


time.time_ns = shifted
"""
"""A clock that a test can set: the daemon adds what the file holds."""


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Mounted]:
    with mounting(tmp_path_factory.mktemp("times")) as factory:
        yield factory(redis_server.url)


@pytest.fixture
def workdir(mounted: Mounted, request: pytest.FixtureRequest) -> Path:
    """Return a new directory on the mount, named after the test."""
    path: Path = mounted.path / request.node.name
    path.mkdir()
    return path


def test_a_file_that_is_written_and_looked_at_has_times_in_order_and_not_ahead(workdir: Path) -> None:
    last = 0
    with (workdir / "file").open("wb", buffering=0) as file:
        for number in range(REWRITES):
            os.pwrite(file.fileno(), b"x", number % 700)
            found = os.fstat(file.fileno()).st_mtime_ns
            assert last < found <= time.time_ns()
            last = found


def _changes(top: Path, chance: random.Random) -> list[Callable[[], Path]]:
    """Return changes of files and directories below *top*. Each returns what it has changed last."""
    file, other, directory = top / "file", top / "other", top / f"d{chance.randrange(4)}"

    def write() -> Path:
        file.write_bytes(b"x" * chance.randrange(100))
        return file

    def append() -> Path:
        with other.open("ab") as opened:
            opened.write(b"y")
        return other

    def make_or_remove() -> Path:
        (directory.rmdir if directory.exists() else directory.mkdir)()
        return top

    def touch() -> Path:
        other.touch()
        return other

    def now() -> Path:
        os.utime(file)
        return file

    def mode() -> Path:
        file.chmod(chance.choice((0o600, 0o644)))
        return file

    return [write, append, make_or_remove, touch, now, mode]


def test_what_happens_later_has_the_later_time_whatever_inode_it_concerns(
    mounted: Mounted, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control socket and the kernel take turns; remounts come in between."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance, last = random.Random(seed), 0
    monkeypatch.setenv("VFSD_RUNTIME_DIR", mounted.environment["VFSD_RUNTIME_DIR"])
    (workdir / "file").touch()
    (workdir / "other").touch()
    for step in range(STEPS):
        if step % 150 == 149:
            mounted.remount()
        if chance.random() < 0.2:
            with connect(str(mounted.path)) as vfs:
                found = vfs.write_file(f"{workdir.name}/socket", b"%d" % step).mtime_ns
        else:
            found = chance.choice(_changes(workdir, chance))().stat().st_ctime_ns
        assert last < found <= time.time_ns()
        last = found


@pytest.mark.parametrize("which", ["both", "access", "modification"])
def test_the_kernels_now_is_the_time_of_the_change(workdir: Path, which: str) -> None:
    """The kernel sends a time of its own, some milliseconds old. It is not recognised if the request waits too long."""
    file = workdir / "file"
    file.touch()
    recognised = 0
    for _ in range(ATTEMPTS):
        os.utime(file, ns=(1, 2))
        before = time.time_ns()
        utimensat(
            file,
            (0, UTIME_OMIT if which == "modification" else UTIME_NOW),
            (0, UTIME_OMIT if which == "access" else UTIME_NOW),
        )
        after, found = time.time_ns(), file.stat()
        times = {"access": found.st_atime_ns, "modification": found.st_mtime_ns}
        if which != "both":
            assert times.pop("modification" if which == "access" else "access") in {1, 2}
        recognised += all(before <= time_ns <= after for time_ns in times.values())
        assert before <= found.st_ctime_ns <= after
    assert recognised > ATTEMPTS // 2


def test_explicit_times_are_kept_to_the_nanosecond_in_the_future_too(mounted: Mounted, workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    for ahead in (3_600 * SECOND + 7, -3_600 * SECOND - 123_456_789, 10**18 + 1):
        times = (time.time_ns() + ahead, time.time_ns() + ahead + 1)
        os.utime(file, ns=times)
        assert (file.stat().st_atime_ns, file.stat().st_mtime_ns) == times
    copy = workdir / "copy"
    shutil.copy2(file, copy)
    assert copy.stat().st_mtime_ns == file.stat().st_mtime_ns == times[1]
    (workdir / "after").touch()
    assert (workdir / "after").stat().st_mtime_ns <= time.time_ns()


MAKEFILE = """
all: d
b: a
\tcat a >b
c: b
\ttouch c
d: c
\tcat b c >d
"""

NINJA = """
rule cat
  command = cat $in >$out
rule touch
  command = touch $out
build b: cat a
build c: touch b
build d: cat b c
"""


@pytest.mark.parametrize(("name", "text", "command"), [("Makefile", MAKEFILE, "make"), ("build.ninja", NINJA, "ninja")])
def test_a_build_has_nothing_to_do_the_second_time(workdir: Path, name: str, text: str, command: str) -> None:
    for number in range(CHAINS):
        place = workdir / f"{number}"
        place.mkdir()
        (place / name).write_text(text)
        (place / "a").write_text("source\n")
        first = _built(command, place)
        assert "skew" not in first.stdout + first.stderr
        second = _built(command, place)
        assert second.stdout.strip() in {"make: Nothing to be done for 'all'.", "ninja: no work to do."}
        (place / "a").write_text("changed\n")
        third = _built(command, place)
        assert third.stdout.strip() not in {"make: Nothing to be done for 'all'.", "ninja: no work to do."}


def _built(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run *command*, also where make runs the tests: an outer make would tell it to print directories."""
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    return subprocess.run([command], cwd=place, env=environment, capture_output=True, text=True, check=True)


def test_times_stay_in_order_while_the_clock_is_set_back_and_forth(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_SHIFTED)
    offset = tmp_path / "offset"
    offset.write_text("0")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CLOCK_OFFSET", str(offset))
    mounted = mount(redis_server.url)
    mounted.expected.append("behind the last change: times follow the clock")

    def change(name: str) -> int:
        (mounted.path / name).write_bytes(b"x")
        return (mounted.path / name).stat().st_mtime_ns

    def set_clock(shift_ns: int) -> None:
        draft = tmp_path / "draft"
        draft.write_text(str(shift_ns))
        draft.rename(offset)

    last = change("a")
    set_clock(-SECOND // 2)  # less than a second: the order stays
    for name in ("b", "a", "b"):
        found = change(name)
        assert last < found
        last = found
    assert "times follow the clock" not in mounted.log.read_text()
    set_clock(-3_600 * SECOND)  # more: follow it, and say so
    found = change("a")
    assert found < last - 3_000 * SECOND
    assert "s behind the last change: times follow the clock" in mounted.log.read_text()
    last = found
    set_clock(0)
    mounted.remount()
    found = change("b")
    assert last < found <= time.time_ns()
    set_clock(-SECOND // 2)
    mounted.remount()  # the last time is the greatest of the scope
    assert found < change("c")
