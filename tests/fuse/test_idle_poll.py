"""Polling for the kernel's next request: only if the loop would sleep, and never while a commit is under way."""

import os
from collections.abc import Iterator

import pytest

from vfsd.fuse.idle_poll import IdlePoll


@pytest.fixture(autouse=True)
def session() -> Iterator[None]:
    """Have the descriptor of a session open, as it is before anything is mounted."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    yield
    os.close(descriptor)


@pytest.fixture(autouse=True)
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


@pytest.mark.parametrize(
    ("busy", "timeout", "waits"),
    [
        pytest.param(False, 1.0, 1, id="the loop would sleep"),
        pytest.param(False, 0.0, 0, id="other tasks can run"),
        pytest.param(True, 1.0, 0, id="a commit is under way"),
    ],
)
def test_when_it_waits(busy: bool, timeout: float, waits: int) -> None:
    idle_poll = IdlePoll(lambda: busy)
    idle_poll.before_io_wait(timeout)
    assert idle_poll.request.waits == waits
