"""Short tortures: acknowledged changes are there, all others are complete or absent, and mount and store are equal."""

import random
from pathlib import Path

import pytest

from tests.support.mounted import MountFactory, mounting
from tests.torture.counts import Counts
from tests.torture.runner import Ending, Torture
from tests.torture.scope_mounts import ScopeMounts
from tests.torture.store_under_test import private_redis

ROUNDS = 3
WRITERS = 4


@pytest.fixture
def rng() -> random.Random:
    """Return the source of all random decisions, and print its seed."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_kill_9_of_the_daemon_loses_no_acknowledged_change_and_leaves_no_partial_one(
    store: str, mount: MountFactory, tmp_path: Path, rng: random.Random
) -> None:
    counts = Counts()
    torture = Torture(ScopeMounts(mount, store, "--xattr"), tmp_path, rng, WRITERS, counts)
    for _ in range(ROUNDS):
        torture.round([], Ending.KILL)
    print(counts)
    assert counts.faults["kills of the daemon"] == ROUNDS
    assert counts.doubtful


def test_faults_of_the_store_and_a_claim_by_another_mount_lose_nothing(tmp_path: Path, rng: random.Random) -> None:
    counts = Counts()
    with private_redis(rng, counts) as store, mounting(tmp_path) as mount:
        mounts = ScopeMounts(mount, store.url, *store.options)
        torture = Torture(mounts, tmp_path, rng, WRITERS, counts)
        faults = rng.sample(store.faults, k=2)
        print(*(fault.__name__ for fault in faults))
        torture.round(faults, rng.choice([Ending.CLAIM, Ending.CLAIM_WHILE_FROZEN, Ending.KILL_DURING_FAULT]))
    print(counts)
    assert counts.comparisons
