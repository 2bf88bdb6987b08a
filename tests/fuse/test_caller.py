"""Whether a thread that waits makes a name: what its system call and its path say, and that nothing is read in vain."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mounted import wait_until
from vfsd.fuse.caller import _ends_with, makes


@contextmanager
def _waiting(fifo: Path, flags: int) -> Iterator[int]:
    """Yield the pid of a process that waits in ``open`` of *fifo* with *flags*."""
    os.mkfifo(fifo)
    program = f"import os; os.open({os.fspath(fifo)!r}, {flags})"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            wait_until(lambda: _waits_in_open(process.pid), "the process to wait")
            yield process.pid
        finally:
            process.kill()


def _waits_in_open(pid: int) -> bool:
    """Return whether *pid* sleeps in open or openat (:manpage:`proc_pid_syscall(5)`)."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and Path(f"/proc/{pid}/syscall").read_text().split()[0] in {"2", "257", "56"}


@pytest.mark.parametrize(("flags", "expected"), [(os.O_WRONLY, False), (os.O_WRONLY | os.O_CREAT, True)])
async def test_an_open_makes_a_name_only_with_o_creat(tmp_path: Path, flags: int, expected: bool) -> None:
    with _waiting(tmp_path / "name", flags) as pid:
        assert await makes(pid, b"name") is expected
        assert not await makes(pid, b"other")


async def test_who_is_gone_or_runs_makes_nothing() -> None:
    assert not await makes(0, b"name")
    assert not await makes(os.getpid(), b"name")
    ended = subprocess.Popen(["true"])  # noqa: ASYNC220 (it ends at once)
    ended.wait()
    assert not await makes(ended.pid, b"name")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"references", True),
        (b"references/", True),
        (b"/mnt/run/./references//", True),
        (b"references/x", False),
        (b"references/references", False),
        (b"my-references", False),
        (b"", False),
    ],
)
def test_the_name_must_be_the_last_one(path: bytes, expected: bool) -> None:
    assert _ends_with(path, b"references") is expected
