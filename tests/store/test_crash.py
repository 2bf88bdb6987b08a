"""A daemon that is killed during commits: every acknowledged change is stored, and no change is stored in part."""

import random
import subprocess
import sys
from itertools import islice

from tests.support.endless_commits import CHUNKS, numbered_change
from tests.support.stores import DurableBackend, StoredRecords, claimed, stored
from vfsd.tree.change import PutChunks


def commit_until_killed(url: str, scope: str, first: int, acknowledged: int) -> list[int]:
    """Run ``tests.support.endless_commits`` until it has *acknowledged* that many changes, and kill it.

    Return the numbers of all changes that it acknowledged.
    """
    command = [sys.executable, "-m", "tests.support.endless_commits", url, scope, str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        numbers = [int(line) for line in islice(process.stdout, acknowledged)]
        assert len(numbers) == acknowledged, "the process ended by itself"
        process.kill()
        return numbers + [int(line) for line in process.stdout.readlines() if line.endswith(b"\n")]


def complete_changes(found: StoredRecords) -> set[int]:
    """Return the numbers of the changes that are stored. Fail if a change is stored in part."""
    numbers = set(found.inodes)
    assert {ino for ino, _ in found.entries.values()} == numbers, "inodes and entries do not match"
    for number in numbers:
        chunks = next(op.chunks for op in numbered_change(number).ops if isinstance(op, PutChunks))
        assert {piece: found.chunks.get((number, piece)) for piece in range(CHUNKS)} == chunks, (
            f"change {number} is stored in part"
        )
    assert len(found.chunks) == len(numbers) * CHUNKS, "there are chunks without a file"
    return numbers


async def test_acknowledged_changes_survive_a_kill_and_none_is_stored_in_part(
    durable_backend: DurableBackend, scope: str, rng: random.Random
) -> None:
    acknowledged: set[int] = set()
    for run in range(3):
        numbers = commit_until_killed(durable_backend.url, scope, 2 + run * 1_000_000, rng.randrange(20, 400))
        acknowledged |= set(numbers)
        found = await stored(durable_backend, scope)
        assert acknowledged <= complete_changes(found)
        assert found.next_ino > max(acknowledged)
    async with claimed(durable_backend, scope) as writer:  # the dead owner does not block the claim
        assert not writer.claim.created
