"""What people run: tar, git, grep, rm, Python's venv. The figure is seconds.

The size is how many files the tree has.
"""

import os
import random
import sys
from functools import partial
from pathlib import Path

from bench import process
from bench.workloads.base import SECONDS, Go, Stage, Workload, filled

_FILES = 5000
_PER_DIRECTORY = 50
_SEED = 11
_WORDS = ("def", "return", "import", "self", "value", "error", "while", "yield", "needle", "open", "close", "none")
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")


def _make_tree(directory: Path, count: int) -> None:
    """Make *count* files as of source code: text, mostly short, in directories of 50."""
    chance = random.Random(_SEED)
    for number in range(count):
        place = directory / f"package{number // _PER_DIRECTORY}"
        place.mkdir(exist_ok=True)
        words = chance.choices(_WORDS, k=min(2000, int(chance.expovariate(1 / 500)) + 1))
        (place / f"module{number}.txt").write_text(f"{number}\n" + "\n".join(words))


def _tar(stage: Stage) -> Path:
    """Return a tar file of the tree, off the mount."""
    tree = filled(stage.scratch / f"tree-{stage.size}", partial(_make_tree, count=stage.size))
    tar = tree.with_suffix(".tar")
    if not tar.exists():
        process.run(["tar", "cf", str(tar), "-C", str(tree), "."])
    return tar


def _unpack(stage: Stage, directory: Path) -> None:
    process.run(["tar", "xf", str(_tar(stage)), "-C", str(directory)])


def _tree(stage: Stage) -> Path:
    return stage.once("tree", partial(_unpack, stage))


def _program(stage: Stage, *command: str) -> Go:
    """Return a run of *command*, which has been read from disk before."""
    process.run([command[0], "--version"])
    environment = {**os.environ, "HOME": str(stage.scratch), "GIT_CONFIG_NOSYSTEM": "1"}
    return lambda: process.run(list(command), environment, stage.directory)


def _git(stage: Stage, *arguments: str) -> Go:
    return _program(stage, *_GIT, "-C", str(_tree(stage)), *arguments)


def _untar(stage: Stage) -> Go:
    return _program(stage, "tar", "xf", str(_tar(stage)), "-C", str(stage.directory))


def _no_repository(stage: Stage) -> None:
    process.run(["rm", "-rf", str(_tree(stage) / ".git")])


def _git_init(stage: Stage) -> Go:
    _no_repository(stage)
    return _git(stage, "init", "-q")


def _git_add(stage: Stage) -> Go:
    _git_init(stage)()
    return _git(stage, "add", "-A")


def _git_commit(stage: Stage) -> Go:
    _git_add(stage)()
    return _git(stage, "commit", "-q", "-m", "all")


def _git_status(stage: Stage) -> Go:
    if not (_tree(stage) / ".git").exists():
        _git_commit(stage)()
    return _git(stage, "status", "--short")


def _grep(stage: Stage) -> Go:
    return _program(stage, "grep", "-rc", "needle", str(_tree(stage)))


def _grep_cold(stage: Stage) -> Go:
    _tree(stage)
    stage.chill()
    return _grep(stage)


def _grep_warm(stage: Stage) -> Go:
    _grep(stage)()
    return _grep(stage)


def _remove(stage: Stage) -> Go:
    _unpack(stage, stage.directory)
    return _program(stage, "rm", "-rf", *map(str, stage.directory.iterdir()))


def _venv(stage: Stage) -> Go:
    return _program(stage, sys.executable, "-m", "venv", str(stage.directory / "venv"))


PROGRAMS = (
    Workload("untar", "tar xf of the tree", _FILES, SECONDS, _untar),
    Workload("git-init", "git init", _FILES, SECONDS, _git_init),
    Workload("git-add", "git add -A of the tree", _FILES, SECONDS, _git_add),
    Workload("git-commit", "git commit of the tree", _FILES, SECONDS, _git_commit),
    Workload("git-status", "git status of the tree, unchanged", _FILES, SECONDS, _git_status),
    Workload("grep-cold", "grep -r through the tree, nothing cached", _FILES, SECONDS, _grep_cold),
    Workload("grep-warm", "the same, just read before", _FILES, SECONDS, _grep_warm),
    Workload("rm", "rm -rf of the tree", _FILES, SECONDS, _remove),
    Workload("venv", "python -m venv", 1, SECONDS, _venv),
)
