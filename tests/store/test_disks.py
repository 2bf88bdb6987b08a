"""The SQLite store on a disk that is full or read-only, each on a small disk of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.disks import SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_on_a_small_disk(scenario: str, tmp_path: Path) -> None:
    command = ["unshare", "--mount", sys.executable, "-m", "tests.store.disks", scenario, str(tmp_path)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
