"""``kill -9`` of the daemon at random moments under load: what was acknowledged is there, the rest whole or absent."""

import random
from pathlib import Path

import pytest

from tests.support.mounted import MountFactory
from tests.torture.runner import Torture

ROUNDS = 4
WRITERS = 4


def test_nothing_acknowledged_is_lost_and_nothing_is_torn(
    store: str, mount: MountFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    torture = Torture(mount(store, "--xattr"), tmp_path, seed, WRITERS)
    for _ in range(ROUNDS):
        torture.round()
    print(torture.figures)
    assert torture.figures.kills == ROUNDS
    assert torture.figures.doubtful
