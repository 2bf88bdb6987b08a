"""Registrations of mounts: a daemon never removes what another daemon has registered."""

import os
from pathlib import Path

import pytest

from vfsd.host import registrations


def test_a_process_removes_only_its_own_registration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VFSD_RUNTIME_DIR", str(tmp_path / "run"))
    for pid, remains in ((1, True), (os.getpid(), False)):
        registration = registrations.Registration("run", "/mnt", "memory:", pid, 0, "1")
        registrations.register(registration).touch()
        registrations.unregister("/mnt")
        assert (registrations.registered("/mnt") is not None, registrations.socket_path("/mnt").exists()) == (
            remains,
            remains,
        )
