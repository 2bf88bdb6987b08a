"""The bench runs, measures what it promises, and removes everything afterwards. No test depends on a speed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench import process
from bench.factory import find_juicefs
from bench.workloads import ALL
from tests.support.mounted import wait_until
from vfsd.host import mountpoint as mountpoints

QUICK = ("create", "read-cold", "list", "unlink", "write", "rm")
CANDIDATES = ("vfsd-redis", "floor", "tmpfs", "hset", *(["juicefs"] if find_juicefs(None) else []))


def _command(directory: Path, *arguments: str) -> list[str]:
    return ["env", f"TMPDIR={directory}", sys.executable, "-m", "bench", *arguments]


def _bench(directory: Path, *arguments: str) -> str:
    done = subprocess.run(_command(directory, *arguments), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _processes_below(directory: Path) -> list[str]:
    """Return the command lines that have *directory* with a slash as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes()
        except OSError:  # the process has ended
            continue
        if os.fsencode(f"{directory}/") in arguments:
            found.append(arguments.replace(b"\0", b" ").decode())
    return found


def _mounted_below(directory: Path) -> list[str]:
    return [mount.mountpoint for mount in mountpoints.mounts() if mount.mountpoint.startswith(f"{directory}/")]


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a directory with a short path for the bench. Afterwards it must have no file, no mount and no process."""
    directory = Path(tempfile.mkdtemp(prefix="bench-"))
    yield directory
    assert _mounted_below(directory) == []
    with suppress(AssertionError):
        wait_until(lambda: not _processes_below(directory), "all processes to end")
    assert _processes_below(directory) == []
    directory.rmdir()  # this fails if the directory is not empty


def test_each_workload_has_a_figure_for_each_candidate_that_can_run_it(place: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    names = ["--only", ",".join(QUICK), "--candidates", ",".join(CANDIDATES)]
    printed = _bench(place, *names, "--scale", "0.002", "--rounds", "2", "--json", str(report))
    written = json.loads(report.read_text())
    for name in QUICK:
        cells = written["results"][name]
        assert list(cells) == [candidate for candidate in CANDIDATES if ALL[name].suits(candidate)]
        for cell in cells.values():
            assert (len(cell["seconds"]), cell["error"]) == (2, "")
            assert cell["rate"] > 0
    assert printed == _bench(place, "table", str(report))
    assert [line.split()[1] for line in printed.splitlines() if "/s |" in line or "seconds |" in line] == [
        name + ("," if not ALL[name].size else "") for name in QUICK
    ]


def test_the_workloads_that_mount_again_and_the_server_with_a_delay(place: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    names = ["--only", "mount-files,mount-content,far-16", "--candidates", "vfsd-redis,vfsd-redis-far,hset"]
    _bench(place, *names, "--scale", "0.004", "--rounds", "1", "--json", str(report))
    results = json.loads(report.read_text())["results"]
    assert {name: list(cells) for name, cells in results.items()} == {
        "mount-files": ["vfsd-redis", "hset"],
        "mount-content": ["vfsd-redis", "hset"],
        "far-16": ["vfsd-redis-far"],
    }
    assert all(cell["rate"] for cells in results.values() for cell in cells.values())


def test_a_candidate_that_fails_is_reported_and_the_others_continue(place: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    broken = tmp_path / "juicefs"
    broken.write_text('#!/bin/sh\n[ "$1" = version ] && echo broken\n')
    broken.chmod(0o700)
    names = ["--only", "mkdir", "--candidates", "juicefs,tmpfs", "--juicefs", str(broken)]
    printed = _bench(place, *names, "--scale", "0.01", "--rounds", "1", "--json", str(report))
    cells = json.loads(report.read_text())["results"]["mkdir"]
    assert f"{broken} format" in cells["juicefs"]["error"]
    assert cells["juicefs"]["rate"] is None
    assert cells["tmpfs"]["rate"] > 0
    assert "| failed |" in printed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_its_samples_and_removes_everything_else(
    place: Path, tmp_path: Path, number: signal.Signals
) -> None:
    report = tmp_path / "report.json"
    names = ["--only", "append", "--candidates", "vfsd-redis,floor,tmpfs", "--rounds", "1000000", "--json", str(report)]
    with subprocess.Popen(_command(place, *names), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith(b"append")
        assert len(_mounted_below(place)) == 3
        running.send_signal(number)
        running.stderr.read()
    assert running.returncode != 0
    assert json.loads(report.read_text())["results"]["append"]["vfsd-redis"]["rate"] > 0


def test_two_checkouts_run_as_pairs_and_each_uses_its_own_package(place: Path, tmp_path: Path) -> None:
    other, calls, report = tmp_path / "other", tmp_path / "calls", tmp_path / "report.json"
    shutil.copytree(process.ROOT / "vfsd", other / "vfsd", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "vfsd" / "__init__.py").open("a") as file:
        file.write('__version__ = "9.9.9"\n')
    program = other / "vfsd" / "__main__.py"
    log_call = f"import sys\nwith open({str(calls)!r}, 'a') as file:\n    file.write(sys.argv[1] + ' ')\n"
    program.write_text(log_call + program.read_text())
    names = ["--only", "read-cold", "--candidates", "vfsd-redis,vfsd-sqlite,tmpfs", "--against", str(other)]
    printed = _bench(place, *names, "--scale", "0.002", "--rounds", "2", "--json", str(report))
    cells = json.loads(report.read_text())["results"]["read-cold"]
    assert list(cells) == ["vfsd-redis", "vfsd-redis-other", "vfsd-sqlite", "vfsd-sqlite-other", "tmpfs"]
    assert [len(cell["seconds"]) for cell in cells.values()] == [2] * 5
    assert f"Other: vfsd 9.9.9 of {other}." in printed
    assert "| geometric mean |" in printed
    # Two stores, each mounted in either order. read-cold also unmounts and mounts again in each of the two rounds.
    assert Counter(calls.read_text().split()) == {"--version": 1, "mount": 8, "umount": 4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "/usr"], "/usr is no checkout"),
        (["--against", ".", "--candidates", "tmpfs"], "names no vfsd"),
        (["--chart", "x.svg", "--candidates", "vfsd-redis"], "needs floor"),
    ],
)
def test_options_that_contradict_each_other_are_refused_before_the_run(
    place: Path, arguments: list[str], message: str
) -> None:
    done = subprocess.run(_command(place, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert message in done.stderr


def test_the_counted_commits_are_those_that_the_guarantees_need(place: Path) -> None:
    printed = _bench(place, "counts", "--count", "20", "--files", "100", "--mebibytes", "2")
    rows = {cells[1].strip(): cells for cells in (line.split("|") for line in printed.splitlines()) if len(cells) > 3}
    commits = {name: round(float(cells[3])) for name, cells in rows.items() if cells[3].strip()[:1].isdigit()}
    assert commits["create, 4 KiB"] == 2
    assert commits["write to temporary, rename"] == 3
    assert commits["rewrite (O_TRUNC), 4 KiB"] == 1
    assert commits["mkdir"] == commits["unlink"] == 1


def test_growth_has_a_ratio_for_each_kind_of_work(place: Path) -> None:
    printed = _bench(place, "growth", "--scale", "0.005")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()[2:]]
    kinds = (
        "list",
        "create",
        "look up",
        "remove",
        "rename a directory of",
        "make a skill",
        "stored",
        "seeded",
        "links",
        "cut a file",
        "on SQLite",
        "is destroyed",
        "by the control socket",
        "made after the mount",
        "ask Redis while a file of SIZE MiB is cut in half",
        "ask Redis while a file of SIZE MiB is removed",
        "look up while a file of SIZE MiB is cut in half",
        "look up while a file of SIZE MiB is removed",
        "append on SQLite in another scope while a file of SIZE MiB is cut in half",
        "append on SQLite in another scope while a file of SIZE MiB is removed",
        "look up on SQLite while a file of SIZE MiB is cut in half",
        "look up on SQLite while a file of SIZE MiB is removed",
        "of one directory are named by the socket",
        "--max-memory",
    )
    assert [kind for kind in kinds if not any(kind in row[0] for row in rows)] == []
    for row in rows:
        small, large, _, _, ratio = (float(cell.replace(",", "")) for cell in row[1:])
        assert large == 10 * small
        assert ratio > 0


def test_memory_has_a_figure_after_each_step_for_both_checkouts(place: Path) -> None:
    printed = _bench(
        place, "memory", "--mebibytes", "4", "--files", "20", "--wait", "0", "--against", str(process.ROOT)
    )
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()[2:]]
    assert [row[1] for row in rows] == ["0", "4", "0", "0", "0", "1", "1", "0"]
    assert all(int(figure) > 0 for row in rows for figure in row[2:])


def test_the_way_of_a_write_stays_short(place: Path) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in _bench(place, "calls").splitlines()]
    (write,) = [row for row in rows if row[:2] == ["write 100 bytes", "Redis"]]
    calls, files = int(write[2]), int(write[3])
    assert calls <= 90
    assert files <= 14


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--only", "nonsense"], "nonsense is not one of create"), (["--size", "create"], "expected WORKLOAD=NUMBER")],
)
def test_unknown_names_are_refused(place: Path, arguments: list[str], message: str) -> None:
    done = subprocess.run(_command(place, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_file_that_is_no_report_is_refused_with_one_line(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{}")
    command = _command(place, "table", str(tmp_path / "file"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "no report" in done.stderr


@pytest.mark.parametrize("arguments", [["server", "/mnt/a b"], ["server --option /mnt/a b", ""]])
def test_a_daemon_is_found_by_its_mountpoint(arguments: list[str]) -> None:
    command = ["sh", "-c", "sleep 60 & wait", *arguments]
    with subprocess.Popen(command, start_new_session=True) as running:
        try:
            wait_until(lambda: running.pid in process.processes_of(Path("/mnt/a b")), "the program to start")
            assert running.pid not in process.processes_of(Path("/mnt"))
        finally:
            os.killpg(running.pid, signal.SIGKILL)


def test_programs_that_the_bench_starts_keep_their_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a measured start would be the time of the compiler, where PYTHONDONTWRITEBYTECODE is set."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    (tmp_path / "module.py").touch()
    process.keep_bytecode(tmp_path / "bytecode")
    subprocess.run([sys.executable, "-c", "import module"], cwd=tmp_path, check=True)
    assert [path.name for path in (tmp_path / "bytecode").rglob("module.*.pyc")] != []
