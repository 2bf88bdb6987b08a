"""A daemon that is killed in the middle of commits: what it acknowledged is there, all else is whole or absent."""

import random
import subprocess
import sys
from itertools import islice

from tests.support.endless_commits import CHUNKS, numbered_change
from tests.support.stores import DurablePlace, Stored, mounted, stored
from vfsd.tree.change import PutChunks


def commit_until_killed(url: str, scope: str, first: int, acknowledged: int) -> list[int]:
    """Run endless_commits, kill it after *acknowledged* changes, and return all that it has acknowledged."""
    command = [sys.executable, "-m", "tests.support.endless_commits", url, scope, str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        numbers = [int(line) for line in islice(process.stdout, acknowledged)]
        assert len(numbers) == acknowledged, "the process ended by itself"
        process.kill()
        return numbers + [int(line) for line in process.stdout.readlines() if line.endswith(b"\n")]


def whole(found: Stored) -> set[int]:
    """Return the numbers of the changes that are there. Fails if one is there in part."""
    numbers = set(found.inodes)
    assert {ino for ino, _ in found.entries.values()} == numbers, "inodes and names do not go together"
    for number in numbers:
        chunks = next(op.chunks for op in numbered_change(number).ops if isinstance(op, PutChunks))
        assert {piece: found.chunks.get((number, piece)) for piece in range(CHUNKS)} == chunks, f"{number} is in part"
    assert len(found.chunks) == len(numbers) * CHUNKS, "content of files that are not there"
    return numbers


async def test_what_was_acknowledged_survives_and_nothing_is_there_in_part(
    durable: DurablePlace, scope: str, chance: random.Random
) -> None:
    acknowledged: set[int] = set()
    for life in range(3):
        numbers = commit_until_killed(durable.url, scope, 2 + life * 1_000_000, chance.randrange(20, 400))
        acknowledged |= set(numbers)
        found = await stored(durable, scope)
        assert acknowledged <= whole(found)
        assert found.next_ino > max(acknowledged)
    async with mounted(durable, scope) as mount:  # the dead owner is in nobody's way
        assert not mount.claim.created
