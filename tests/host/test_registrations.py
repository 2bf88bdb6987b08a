"""Registrations of mounts: a daemon never removes what another has registered, and nobody trusts a stranger's files."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.files import NOBODY, unprivileged
from vfsd.errors import VfsdError
from vfsd.host import registrations

RUN = registrations.Registration("run", "/mnt", "memory:", os.getpid(), 0, "1")


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return where mounts are registered. It does not exist yet."""
    monkeypatch.setenv("VFSD_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.mark.usefixtures("directory")
def test_a_process_removes_only_its_own_registration() -> None:
    for pid, remains in ((1, True), (os.getpid(), False)):
        registration = registrations.Registration("run", "/mnt", "memory:", pid, 0, "1")
        registrations.register(registration).touch()
        registrations.unregister("/mnt")
        assert (registrations.registered("/mnt") is not None, registrations.socket_path("/mnt").exists()) == (
            remains,
            remains,
        )


def _of_a_stranger(directory: Path) -> None:
    os.chown(directory, NOBODY, NOBODY)


def _writable_by_a_group(directory: Path) -> None:
    directory.chmod(0o770)


def _writable_by_all(directory: Path) -> None:
    directory.chmod(0o1777)


def _a_link(directory: Path) -> None:
    directory.symlink_to(directory.rename(directory.with_name("elsewhere")))


USES: list[Callable[[], object]] = [
    lambda: registrations.register(RUN),
    lambda: registrations.reserve("/mnt"),
    lambda: registrations.registered("/mnt"),
    lambda: registrations.socket_path("/mnt"),
]


@pytest.mark.parametrize("spoil", [_of_a_stranger, _writable_by_a_group, _writable_by_all, _a_link])
def test_nobody_reads_or_writes_a_directory_that_a_stranger_may_have_filled(
    directory: Path, spoil: Callable[[Path], None]
) -> None:
    registrations.register(RUN).touch()
    spoil(directory)
    for use in USES:
        with pytest.raises(VfsdError, match="VFSD_RUNTIME_DIR"):
            use()
    registrations.unregister("/mnt")
    assert len(list(directory.iterdir())) == 2


def test_a_directory_of_root_can_be_read_and_not_written(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.mkdir(mode=0o755)
    monkeypatch.chdir(directory.parent)
    directory.parent.chmod(0o755)
    with unprivileged():
        monkeypatch.setattr(registrations, "runtime_dir", lambda: Path("run"))
        assert registrations.socket_path("/mnt").parent == Path("run")
        for use in USES[:2]:
            with pytest.raises(VfsdError, match="must belong to uid 65534 alone"):
                use()


def test_without_a_directory_nothing_is_registered(directory: Path) -> None:
    assert registrations.registered("/mnt") is None
    assert registrations.socket_path("/mnt").parent == directory
    assert not directory.exists()


def test_a_new_registration_replaces_that_of_a_dead_daemon(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody listens at the socket of the old one."""
    monkeypatch.setenv("VFSD_RUNTIME_DIR", str(tmp_path / "run"))
    for pid in (1, os.getpid()):
        registrations.register(registrations.Registration("run", "/mnt", "memory:", pid, 0, "1")).touch()
    assert [registration.pid for registration in registrations.every()] == [os.getpid()]
    registrations.unregister("/mnt")
    assert list((tmp_path / "run").iterdir()) == []
