"""The programs on the documentation pages run unchanged on a mount, and print what they should."""

import re
import sys
from pathlib import Path

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject, python
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer

MOUNTPOINT = "/mnt/run-42"
REVIEW = ["skills/review/SKILL.md", "skills/review/references/style.md"]
PLANS = ["skills/plans/SKILL.md", "skills/plans/references/form.md"]

PRINTED: dict[str, list[str | re.Pattern[str]]] = {
    "README.md": [
        f"{['plan.md', *PLANS]}\n",
        "[ 'plans' ]\n",
        "- first look\n- then write\n\n",
    ],
    "docs/agents.md": [
        f"{['notes/progress.md', *REVIEW]}\n",
        "Prefer short names.\n\n",
        re.compile(r"""\[
  {
    name: 'review',
(?s:.*)    description: 'How this team reviews code',
(?s:.*)
\]
\[
  'notes/progress\.md',
  'skills/review/SKILL\.md',
  'skills/review/references/style\.md'
\]
"""),
        "first look, then write\n\n[{'path': '/notes/plan.md', 'line': 1, 'text': 'first look, then write'}]\n",
    ],
    "docs/control.md": ["{'id': 1, 'ok': True, 'result': {'path': 'hello.md', 'changed': True}}\n"],
    "clients/node/README.md": ["Prefer short names.\n\n"],
}
"""The output of the programs of each page, in their order, on one mount."""


class SnippetRunner:
    """Runs the programs of a page on *mounted*."""

    def __init__(self, node: NodeProject, deepagents: Path, mounted: Mounted) -> None:
        self._node = node
        self._deepagents = deepagents
        self._mounted = mounted

    def run(self, language: str, program: str) -> str:
        """Return the output of *program*."""
        assert MOUNTPOINT in program
        program = program.replace(MOUNTPOINT, str(self._mounted.path))
        return {"python": self._python, "js": self._js}[language](program)

    def _python(self, program: str) -> str:
        interpreter = self._deepagents if "deepagents" in program else sys.executable
        return python(interpreter, "-c", program, env=self._mounted.environment)

    def _js(self, program: str) -> str:
        self._node.write("snippet.mjs", program)
        printed = self._node.run("snippet.mjs", env=self._mounted.environment)
        assert printed.returncode == 0, printed.stderr
        return printed.stdout


@pytest.fixture
def runner(node: NodeProject, deepagents: Path, mount: MountFactory, redis_server: RedisServer) -> SnippetRunner:
    return SnippetRunner(node, deepagents, mount(redis_server.url))


def programs(page: Path) -> list[tuple[str, str]]:
    """Return language and text of each fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PRINTED)
def test_programs_of_a_page(page: str, runner: SnippetRunner) -> None:
    printed = [runner.run(language, program) for language, program in programs(CHECKOUT / page)]
    assert len(printed) == len(PRINTED[page])
    for found, expected in zip(printed, PRINTED[page], strict=True):
        assert expected.fullmatch(found) if isinstance(expected, re.Pattern) else found == expected, found


def test_no_page_is_forgotten() -> None:
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md"), *(CHECKOUT / "clients").rglob("*.md")]
    assert {str(page.relative_to(CHECKOUT)) for page in pages if programs(page)} == set(PRINTED)
