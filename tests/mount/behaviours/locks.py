"""Locks between processes: of whole files (flock) and of records (fcntl)."""

import fcntl
import os
from errno import EAGAIN, EBADF
from pathlib import Path

from tests.mount.actors import acting
from tests.mount.calls import opened, refused

_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB


def flock_between_processes(place: Path) -> None:
    file = place / "file"
    file.touch()
    with opened(file, os.O_RDWR) as fd:
        with acting("hold_flock", file) as holder:
            assert holder.hear() == "locked"
            with refused(EAGAIN):
                fcntl.flock(fd, _NOW)
            holder.go_on()
        fcntl.flock(fd, _NOW)
        with opened(file, os.O_RDONLY) as other:
            with refused(EAGAIN):
                fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(fd, fcntl.LOCK_SH)
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def flock_ends_with_its_holder(place: Path) -> None:
    file = place / "file"
    file.touch()
    with acting("hold_flock", file) as holder:
        assert holder.hear() == "locked"
    with opened(file, os.O_RDWR) as fd:
        fcntl.flock(fd, _NOW)


def record_locks_between_processes(place: Path) -> None:
    file = place / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd:
        with acting("hold_lockf", file, 10, 20) as holder:
            assert holder.hear() == "locked"
            for start, length in ((10, 1), (29, 1), (0, 100), (20, 0)):
                with refused(EAGAIN):
                    fcntl.lockf(fd, _NOW, length, start)
            fcntl.lockf(fd, _NOW, 10, 0)
            fcntl.lockf(fd, _NOW, 0, 30)
            holder.go_on()
        fcntl.lockf(fd, _NOW, 100, 0)


def record_locks_name_their_holder(place: Path) -> None:
    file = place / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd:
        fcntl.lockf(fd, _NOW, 10, 0)
        for start, expected in ((5, os.getpid()), (10, 0)):
            with acting("ask_lockf", file, start, 1) as asking:
                assert int(asking.hear()) == expected
                asking.go_on()


def a_waiting_record_lock_is_given_in_the_end(place: Path) -> None:
    file = place / "file"
    file.write_bytes(bytes(100))
    with opened(file, os.O_RDWR) as fd, acting("wait_lockf", file) as waiting:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        assert waiting.hear() == "waiting"
        waiting.let_go()
        fcntl.lockf(fd, fcntl.LOCK_UN)
        assert waiting.hear() == "locked"
        waiting.go_on()


def record_locks_need_a_fitting_descriptor(place: Path) -> None:
    (place / "file").touch()
    with opened(place / "file", os.O_RDONLY) as fd, refused(EBADF):
        fcntl.lockf(fd, _NOW)


def closing_gives_record_locks_back(place: Path) -> None:
    """fcntl_locking(2): closing any descriptor of the file does."""
    file = place / "file"
    file.touch()
    with opened(file, os.O_RDWR) as fd:
        fcntl.lockf(fd, _NOW)
        with opened(file, os.O_RDONLY):
            pass
        with acting("hold_lockf", file, 0, 0) as holder:
            assert holder.hear() == "locked"
