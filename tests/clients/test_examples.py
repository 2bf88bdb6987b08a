"""The examples run, and print what the documentation shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject, python
from tests.support.servers import RedisServer

API_KEYS = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
SKILL_FILES = ["skills/review/SKILL.md", "skills/review/references/style.md"]


@pytest.mark.parametrize("store", ["private", "redis", "sqlite"])
def test_restart_demo(store: str, redis_server: RedisServer, tmp_path: Path) -> None:
    options = {"private": [], "redis": ["--redis", redis_server.url], "sqlite": ["--sqlite", str(tmp_path / "demo.db")]}
    lines = python(sys.executable, "examples/restart_demo.py", *options[store], env=ENVIRONMENT).splitlines()
    files = " ".join(SKILL_FILES)
    assert lines == [
        f"before the crash:  notes/progress.md {files}",
        "the daemon was killed (SIGKILL)",
        "mounted again:     notes/progress.md",
        f"seeded again:      notes/progress.md {files}",
    ]


def test_a_demo_without_a_store_fails_with_a_reason(tmp_path: Path) -> None:
    command = [sys.executable, "examples/skills_demo.py", "--redis", f"unix://{tmp_path}/none?db=0"]
    done = subprocess.run(command, cwd=CHECKOUT, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    *_, reason, last = done.stderr.splitlines()
    assert reason.startswith("vfsd: ")
    assert last == "the demonstration ended early: vfsd mount failed, see the error above"


def test_skills_demo(tmp_path: Path) -> None:
    lines = python(
        sys.executable, "examples/skills_demo.py", "--sqlite", str(tmp_path / "demo.db"), env=ENVIRONMENT
    ).splitlines()
    assert lines == [
        "skills/brand/SKILL.md says: Colours are in references/colours.md.",
        "skills/brand/references/colours.md: Ink #1b1b1f, paper #fdfcf8.",
        "references/colours.md: Ink #1b1b1f, paper #fdfcf8.",
        "ls shows only: skills",
        "seeded: brand, 'Colours and voice of the brand', 2 files",
    ]


def test_the_mastra_example_without_a_key_does_nothing(node: NodeProject) -> None:
    env = {name: value for name, value in os.environ.items() if name not in API_KEYS}
    printed = node.run("examples/mastra/agent.mjs", env=env)
    assert printed.returncode == 0
    assert printed.stdout == (
        "This example asks a real model: set OPENAI_API_KEY or ANTHROPIC_API_KEY. Nothing was done.\n"
    )


def test_the_mastra_example_without_vfsd_fails_with_a_reason(node: NodeProject, tmp_path: Path) -> None:
    env = {**ENVIRONMENT, "OPENAI_API_KEY": "none", "VFSD": "no-vfsd-here", "TMPDIR": str(tmp_path)}
    printed = node.run("examples/mastra/agent.mjs", env=env)
    assert printed.returncode == 1
    assert printed.stderr.startswith("The example ended early: there is no command no-vfsd-here: put vfsd on the PATH")
    assert list(tmp_path.iterdir()) == []


def test_the_mastra_example_with_a_scripted_model(node: NodeProject, tmp_path: Path) -> None:
    env = {**ENVIRONMENT, "VFSD": f"{sys.executable} -m vfsd"}
    env |= {"VFSD_RUNTIME_DIR": str(tmp_path / "run"), "TMPDIR": str(tmp_path)}
    result = node.result("tests/clients/node/example.mjs", env=env)
    skill = ["skills/field-notes/SKILL.md", "skills/field-notes/references/sources.md"]
    assert result["first"] == {"text": "noted", "files": ["notes/facts.md", *skill]}
    assert result["second"] == {"text": "4 euros [user]", "files": ["notes/facts.md", *skill]}
    assert "field-notes" in result["prompt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
