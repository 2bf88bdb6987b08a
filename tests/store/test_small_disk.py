"""The SQLite store on a full or read-only disk. Each scenario runs in a process with its own small disk."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.small_disk import SCENARIOS


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenario_succeeds(scenario: str, tmp_path: Path) -> None:
    command = ["unshare", "--mount", sys.executable, "-m", "tests.store.small_disk", scenario, str(tmp_path)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
