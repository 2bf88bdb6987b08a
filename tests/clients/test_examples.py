"""The examples and the snippets of docs/agents.md do what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer

PAGE = (CHECKOUT / "docs" / "agents.md").read_text()
AWAY = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}

PYTHON, DEEPAGENTS = snippets("python")
MASTRA, VFSD = snippets("js")
SKILL_FILES = ["skills/review/SKILL.md", "skills/review/references/style.md"]


def run(interpreter: Path | str, *arguments: str, env: dict[str, str]) -> str:
    """Run a Python program at the root of the checkout, and return what it printed."""
    done = subprocess.run(
        [interpreter, *arguments], cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def aimed(snippet: str, mounted: Mounted) -> str:
    """Return *snippet* with the mountpoint of a test in it."""
    assert "/mnt/run-42" in snippet
    return snippet.replace("/mnt/run-42", str(mounted.path))


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


def test_snippet_of_python(mounted: Mounted) -> None:
    printed = run(sys.executable, "-c", aimed(PYTHON, mounted), env=mounted.environment)
    assert printed.strip() == str(["notes/progress.md", *SKILL_FILES])
    assert (mounted.path / "notes" / "progress.md").read_text() == "all done\n"


def test_snippets_of_mastra(node: NodeProject, mounted: Mounted) -> None:
    node.write("vfsd-snippet.mjs", aimed(VFSD, mounted))
    printed = node.run("vfsd-snippet.mjs", env=mounted.environment)
    assert printed.returncode == 0, printed.stderr
    assert "description: 'How this team reviews code'" in printed.stdout
    assert all(path in printed.stdout for path in SKILL_FILES)
    node.write("mastra-snippet.mjs", aimed(MASTRA, mounted))
    printed = node.run("mastra-snippet.mjs")
    assert (printed.returncode, printed.stdout) == (0, "Prefer short names.\n\n"), printed.stderr


def test_snippet_of_deepagents(deepagents: Path, mounted: Mounted) -> None:
    printed = run(deepagents, "-c", aimed(DEEPAGENTS, mounted), env=dict(os.environ))
    assert printed.startswith("first look, then write\n")
    assert "'path': '/notes/plan.md'" in printed


@pytest.mark.parametrize("store", ["private", "redis", "sqlite"])
def test_restart_demo(store: str, redis_server: RedisServer, tmp_path: Path) -> None:
    given = {"private": [], "redis": ["--redis", redis_server.url], "sqlite": ["--sqlite", str(tmp_path / "demo.db")]}
    lines = run(sys.executable, "examples/restart_demo.py", *given[store], env=ENVIRONMENT).splitlines()
    files = " ".join(SKILL_FILES)
    assert lines == [
        f"before the crash:  notes/progress.md {files}",
        "the daemon was killed (SIGKILL)",
        "mounted again:     notes/progress.md",
        f"seeded again:      notes/progress.md {files}",
    ]


def test_skills_demo(tmp_path: Path) -> None:
    lines = run(
        sys.executable, "examples/skills_demo.py", "--sqlite", str(tmp_path / "demo.db"), env=ENVIRONMENT
    ).splitlines()
    assert lines == [
        "skills/brand/SKILL.md says: Colours are in references/colours.md.",
        "skills/brand/references/colours.md: Ink #1b1b1f, paper #fdfcf8.",
        "references/colours.md: Ink #1b1b1f, paper #fdfcf8.",
        "ls shows only: skills",
        "seeded: brand, 'Colours and voice of the brand', 2 files",
    ]


def test_mastra_example_without_a_key_says_so(node: NodeProject) -> None:
    env = {name: value for name, value in os.environ.items() if name not in AWAY}
    printed = node.run("examples/mastra/agent.mjs", env=env)
    assert printed.returncode == 0
    assert printed.stdout == (
        "This example asks a real model: set OPENAI_API_KEY or ANTHROPIC_API_KEY. Nothing was done.\n"
    )


def test_mastra_example_with_a_model_that_is_scripted(node: NodeProject, tmp_path: Path) -> None:
    env = {**ENVIRONMENT, "VFSD": f"{sys.executable} -m vfsd"}
    env |= {"VFSD_RUNTIME_DIR": str(tmp_path / "run"), "TMPDIR": str(tmp_path)}
    result = node.result("tests/clients/node/example.mjs", env=env)
    skill = ["skills/field-notes/SKILL.md", "skills/field-notes/references/sources.md"]
    assert result["first"] == {"text": "noted", "files": ["notes/facts.md", *skill]}
    assert result["second"] == {"text": "4 euros [user]", "files": ["notes/facts.md", *skill]}
    assert "field-notes" in result["told"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
