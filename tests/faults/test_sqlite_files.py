"""Somebody removes or overwrites a file of SQLite under a live mount: calls fail, and the log says which file."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support.mounted import Mounted, MountFactory
from tests.support.outcomes import DONE, outcome, write

TAMPERED = r"was moved, removed or replaced while it is in use"
OVERWRITTEN = r"another program wrote to .* while it is in use"
NOT_RENEWED = r"could not renew the lease"
NO_CHECKPOINT = r"could not checkpoint the log"
SAVED = r"its commits were copied into"
FILES = 20
"""So few that no checkpoint is due: a write at that moment would be taken for its own."""
CONTENT = b"acknowledged"


def _mounted_with_files(mount: MountFactory, database: Path) -> Mounted:
    mounted = mount(f"sqlite:{database}")
    for number in range(FILES):
        (mounted.path / f"file{number}").write_bytes(CONTENT)
    return mounted


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _assert_refused(mounted: Mounted, name: str, why: str) -> None:
    """Check that changes and fsync fail, that reading works, and that the daemon's log names the file once."""
    file = mounted.path / "file7"
    assert outcome(lambda: write(file, b"never stored")) == "EIO"
    assert outcome((mounted.path / "directory").mkdir) == "EIO"
    assert outcome(lambda: _fsync(file)) == "EIO"
    assert file.read_bytes() == CONTENT
    errors = [line for line in mounted.log.read_text().splitlines() if " ERROR " in line]
    assert len(errors) == 1, errors
    assert name in errors[0]
    assert why in errors[0]


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_removed_log_or_index_is_eio_and_nothing_acknowledged_is_lost(
    mount: MountFactory, tmp_path: Path, suffix: str
) -> None:
    mounted = _mounted_with_files(mount, tmp_path / "scopes.db")
    mounted.expected += [TAMPERED, NOT_RENEWED, NO_CHECKPOINT, SAVED]
    (tmp_path / f"scopes.db{suffix}").unlink()
    _assert_refused(mounted, f"scopes.db{suffix}", "removed")
    mounted.kill()
    mounted.start()
    assert {file.read_bytes() for file in mounted.path.iterdir()} == {CONTENT}
    assert len(list(mounted.path.iterdir())) == FILES
    assert outcome((mounted.path / "directory").mkdir) == DONE


def test_a_database_overwritten_by_a_backup_is_eio(mount: MountFactory, tmp_path: Path) -> None:
    database = tmp_path / "scopes.db"
    mounted = _mounted_with_files(mount, database)
    mounted.expected += [OVERWRITTEN, NOT_RENEWED, NO_CHECKPOINT]
    shutil.copy(database, tmp_path / "backup")
    (mounted.path / "file8").write_bytes(CONTENT)
    database.write_bytes((tmp_path / "backup").read_bytes())
    _assert_refused(mounted, "scopes.db", "another program wrote to")


def test_a_database_that_is_moved_back_takes_changes_again(mount: MountFactory, tmp_path: Path) -> None:
    database = tmp_path / "scopes.db"
    mounted = _mounted_with_files(mount, database)
    mounted.expected += [TAMPERED, NOT_RENEWED, NO_CHECKPOINT, r"its files are in place again"]
    database.rename(tmp_path / "away")
    _assert_refused(mounted, "scopes.db", "moved")
    (tmp_path / "away").rename(database)
    assert outcome(lambda: write(mounted.path / "file7", b"stored")) == DONE
    mounted.remount()
    assert (mounted.path / "file7").read_bytes().startswith(b"stored")
