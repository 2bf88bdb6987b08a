"""Mastra finds, reads and reloads skills on a mount."""

from pathlib import Path

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


def test_skills_have_the_results_of_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, tmpfs: Path
) -> None:
    program = "tests/clients/node/skills.mjs"
    expected = node.result(program, str(tmpfs))
    assert node.result(program, str(mount(redis_server.url).path)) == expected
    gave = {outcome["step"]: outcome.get("gave") for outcome in expected}
    assert gave["reference"] == "Prefer short names.\n"
    assert gave["reference without its directory"] is None
    assert gave["rewritten in place"] == ["review: Reviews prose"]
    assert gave["replaced by another file"] == ["review: Reviews maps"]
    assert gave["a skill renamed"] == ["design: Plans work", "review: Reviews maps"]
    assert gave["a skill removed"] == ["review: Reviews maps"]
    assert gave["a new reference"] == ["more.md", "style.md"]


def test_the_prompt_of_an_agent_contains_the_current_skill(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer
) -> None:
    """The skill changes before, during and between two generations."""
    root = mount(redis_server.url).path
    (root / "skills" / "review").mkdir(parents=True)
    (root / "skills" / "review" / "SKILL.md").write_text("---\nname: review\ndescription: description first\n---\n")
    result = node.result("tests/clients/node/generations.mjs", "local", str(root))
    assert result["prompts"] == {
        "first": ["description before"],
        "firstAfterTheTool": ["description during", "instructions during"],
        "second": ["description between"],
    }
    assert result["answers"] == ["done", "done again"]
    assert (root / "notes.md").read_text() == "noted\n"
