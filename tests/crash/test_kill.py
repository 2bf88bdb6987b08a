"""Short tortures: what was acknowledged is there, the rest whole or absent, and the mount agrees with its store."""

import random
from pathlib import Path

import pytest

from tests.support.mounted import MountFactory, mounting
from tests.torture.figures import Figures
from tests.torture.runner import Ending, Torture
from tests.torture.setting import private_redis
from tests.torture.stage import Stage

ROUNDS = 3
WRITERS = 4


@pytest.fixture
def rng() -> random.Random:
    """Return what decides everything, its seed printed."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_kill_9_of_the_daemon_loses_nothing_acknowledged_and_tears_nothing(
    store: str, mount: MountFactory, tmp_path: Path, rng: random.Random
) -> None:
    figures = Figures()
    torture = Torture(Stage(mount, store, "--xattr"), tmp_path, rng, WRITERS, figures)
    for _ in range(ROUNDS):
        torture.round([], Ending.KILL)
    print(figures)
    assert figures.faults["kills of the daemon"] == ROUNDS
    assert figures.doubtful


def test_nor_does_a_disturbed_store_or_a_claim_elsewhere(tmp_path: Path, rng: random.Random) -> None:
    figures = Figures()
    with private_redis(rng, figures) as setting, mounting(tmp_path) as mount:
        stage = Stage(mount, setting.url, *setting.options)
        torture = Torture(stage, tmp_path, rng, WRITERS, figures)
        faults = rng.sample(setting.faults, k=2)
        print(*(fault.__name__ for fault in faults))
        torture.round(faults, rng.choice([Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN, Ending.KILL_AMID_FAULT]))
    print(figures)
    assert figures.comparisons
