"""Fixtures: skills on disk, stores to mount from, and the content of a store."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.control.conftest import connected  # noqa: F401 (a fixture for the tests here)
from tests.support.mounted import Mounted
from tests.support.servers import RedisServer
from tests.support.store_comparison import stored_tree

SKILL_MD = b"---\nname: review\ndescription: how to review\n---\nRead it first.\n"
SCRIPT = b"#!/bin/sh\necho reviewed\n"
RULES = b"rule\n" * 10_000

Kept: TypeAlias = Callable[[Mounted], dict[str, bytes | None]]


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, redis_server: RedisServer, tmp_path: Path) -> str:
    """Return the URL of a store."""
    return redis_server.url if request.param == "redis" else f"sqlite:{tmp_path}/store.db"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """Return a skill on the disk, with a script and a reference."""
    top = tmp_path / "review"
    for name, content, mode in (
        ("SKILL.md", SKILL_MD, 0o644),
        ("scripts/run.sh", SCRIPT, 0o755),
        ("references/rules.md", RULES, 0o444),
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(content)
        (top / name).chmod(mode)
    return top


@pytest.fixture
def kept() -> Kept:
    """Return what the store of a mount holds: content by path, without the root; None for directories."""

    def look(mounted: Mounted) -> dict[str, bytes | None]:
        facts = stored_tree(mounted.store, mounted.scope).facts
        return {path.decode(): None if fact.mode & 0o40000 else fact.content for path, fact in facts.items() if path}

    return look
