"""Programs that people run: tar, git, grep, rm and Python's venv. The figure is in seconds.

The size is the number of files in the tree.
"""

import os
import random
import sys
from functools import partial
from pathlib import Path

from bench import process
from bench.workloads.base import SECONDS, Target, TimedCall, Workload, filled

_FILES = 5000
_PER_DIRECTORY = 50
_SEED = 11
_WORDS = ("def", "return", "import", "self", "value", "error", "while", "yield", "needle", "open", "close", "none")
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "gc.auto=0")


def _make_tree(directory: Path, count: int) -> None:
    """Create *count* files like source code: text, most of them short, with 50 files in each directory."""
    rng = random.Random(_SEED)
    for number in range(count):
        place = directory / f"package{number // _PER_DIRECTORY}"
        place.mkdir(exist_ok=True)
        words = rng.choices(_WORDS, k=min(2000, int(rng.expovariate(1 / 500)) + 1))
        (place / f"module{number}.txt").write_text(f"{number}\n" + "\n".join(words))


def _tar(target: Target) -> Path:
    """Return a tar file of the tree. It is outside the mount."""
    tree = filled(target.scratch / f"tree-{target.size}", partial(_make_tree, count=target.size))
    tar = tree.with_suffix(".tar")
    if not tar.exists():
        process.run(["tar", "cf", str(tar), "-C", str(tree), "."])
    return tar


def _unpack(target: Target, directory: Path) -> None:
    process.run(["tar", "xf", str(_tar(target)), "-C", str(directory)])


def _tree(target: Target) -> Path:
    return target.once("tree", partial(_unpack, target))


def _program(target: Target, *command: str) -> TimedCall:
    """Return a call that runs *command*. The program is read from disk before, because that must not be timed."""
    process.run([command[0], "--version"])
    environment = {**os.environ, "HOME": str(target.scratch), "GIT_CONFIG_NOSYSTEM": "1"}
    return lambda: process.run(list(command), environment, target.directory)


def _git(target: Target, *arguments: str) -> TimedCall:
    return _program(target, *_GIT, "-C", str(_tree(target)), *arguments)


def _untar(target: Target) -> TimedCall:
    return _program(target, "tar", "xf", str(_tar(target)), "-C", str(target.directory))


def _remove_repository(target: Target) -> None:
    process.run(["rm", "-rf", str(_tree(target) / ".git")])


def _git_init(target: Target) -> TimedCall:
    _remove_repository(target)
    return _git(target, "init", "-q")


def _git_add(target: Target) -> TimedCall:
    _git_init(target)()
    return _git(target, "add", "-A")


def _git_commit(target: Target) -> TimedCall:
    _git_add(target)()
    return _git(target, "commit", "-q", "-m", "all")


def _git_status(target: Target) -> TimedCall:
    if not (_tree(target) / ".git").exists():
        _git_commit(target)()
    return _git(target, "status", "--short")


def _grep(target: Target) -> TimedCall:
    return _program(target, "grep", "-rc", "needle", str(_tree(target)))


def _grep_cold(target: Target) -> TimedCall:
    _tree(target)
    target.make_cold()
    return _grep(target)


def _grep_warm(target: Target) -> TimedCall:
    _grep(target)()
    return _grep(target)


def _remove(target: Target) -> TimedCall:
    _unpack(target, target.directory)
    return _program(target, "rm", "-rf", *map(str, target.directory.iterdir()))


def _venv(target: Target) -> TimedCall:
    return _program(target, sys.executable, "-m", "venv", str(target.directory / "venv"))


PROGRAMS = (
    Workload("untar", "tar xf of a source tree", _FILES, SECONDS, _untar),
    Workload("git-init", "git init", _FILES, SECONDS, _git_init),
    Workload("git-add", "git add -A of the tree", _FILES, SECONDS, _git_add),
    Workload("git-commit", "git commit of the tree", _FILES, SECONDS, _git_commit),
    Workload("git-status", "git status of the unchanged tree", _FILES, SECONDS, _git_status),
    Workload("grep-cold", "grep -r in the tree: nothing is cached", _FILES, SECONDS, _grep_cold),
    Workload("grep-warm", "grep -r in the tree: read just before", _FILES, SECONDS, _grep_warm),
    Workload("rm", "rm -rf of the tree", _FILES, SECONDS, _remove),
    Workload("venv", "python -m venv", 1, SECONDS, _venv),
)
