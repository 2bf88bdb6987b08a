"""Locks between processes: on whole files (flock) and on records (fcntl)."""

import fcntl
import os
from errno import EAGAIN, EBADF
from pathlib import Path

from tests.mount.other_process import other_process
from tests.support.files import opened, refused

_EXCLUSIVE_NOWAIT = fcntl.LOCK_EX | fcntl.LOCK_NB


def flock_between_processes(workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    with opened(file, os.O_RDWR) as fd:
        with other_process("hold_flock", file) as holder:
            assert holder.read_line() == "locked"
            with refused(EAGAIN):
                fcntl.flock(fd, _EXCLUSIVE_NOWAIT)
            holder.finish()
        fcntl.flock(fd, _EXCLUSIVE_NOWAIT)
        with opened(file, os.O_RDONLY) as other:
            with refused(EAGAIN):
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_SH)
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def flock_ends_with_its_holder(workdir: Path) -> None:
    file = workdir / "file"
    file.touch()
    with other_process("hold_flock", file) as holder:
        assert holder.read_line() == "locked"
    with opened(file, os.O_RDWR) as fd:
        fcntl.flock(fd, _EXCLUSIVE_NOWAIT)


def record_locks_between_processes(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd:
        with other_process("hold_lockf", file, 10, 20) as holder:
            assert holder.read_line() == "locked"
            for start, length in ((10, 1), (29, 1), (0, 100), (20, 0)):
                with refused(EAGAIN):
                    fcntl.lockf(fd, _EXCLUSIVE_NOWAIT, length, start)
            fcntl.lockf(fd, _EXCLUSIVE_NOWAIT, 10, 0)
            fcntl.lockf(fd, _EXCLUSIVE_NOWAIT, 0, 30)
            holder.finish()
        fcntl.lockf(fd, _EXCLUSIVE_NOWAIT, 100, 0)


def f_getlk_returns_the_holder_of_a_record_lock(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd:
        fcntl.lockf(fd, _EXCLUSIVE_NOWAIT, 10, 0)
        for start, expected in ((5, os.getpid()), (10, 0)):
            with other_process("ask_lockf", file, start, 1) as asking:
                assert int(asking.read_line()) == expected
                asking.finish()


def a_blocked_record_lock_is_granted_after_the_unlock(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd, other_process("wait_lockf", file) as waiting:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        assert waiting.read_line() == "waiting"
        waiting.resume()
        fcntl.lockf(fd, fcntl.LOCK_UN)
        assert waiting.read_line() == "locked"
        waiting.finish()


def a_write_lock_needs_a_writable_descriptor(workdir: Path) -> None:
    (workdir / "file").touch()
    with opened(workdir / "file", os.O_RDONLY) as fd, refused(EBADF):
        fcntl.lockf(fd, _EXCLUSIVE_NOWAIT)


def closing_releases_record_locks(workdir: Path) -> None:
    """fcntl_locking(2): closing any descriptor of the file releases them."""
    file = workdir / "file"
    file.touch()
    with opened(file, os.O_RDWR) as fd:
        fcntl.lockf(fd, _EXCLUSIVE_NOWAIT)
        with opened(file, os.O_RDONLY):
            pass
        with other_process("hold_lockf", file, 0, 0) as holder:
            assert holder.read_line() == "locked"
