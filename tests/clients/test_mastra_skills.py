"""Skills on a mount, as Mastra discovers, reads and reloads them."""

from pathlib import Path

from tests.clients.frameworks import NodeProject
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


def test_skills_are_as_on_tmpfs(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer, ordinary: Path
) -> None:
    program = "tests/clients/node/skills.mjs"
    expected = node.result(program, str(ordinary))
    assert node.result(program, str(mount(redis_server.url).path)) == expected
    gave = {outcome["step"]: outcome.get("gave") for outcome in expected}
    assert gave["reference"] == "Prefer short names.\n"
    assert gave["reference without its directory"] is None
    assert gave["rewritten in place"] == ["review: Reviews prose"]
    assert gave["replaced by another file"] == ["review: Reviews maps"]
    assert gave["a skill renamed"] == ["design: Plans work", "review: Reviews maps"]
    assert gave["a skill removed"] == ["review: Reviews maps"]
    assert gave["a new reference"] == ["more.md", "style.md"]


def test_an_agent_is_told_of_a_skill_as_it_is_now(
    node: NodeProject, mount: MountFactory, redis_server: RedisServer
) -> None:
    """It changes before, during and between two generations."""
    place = mount(redis_server.url).path
    (place / "skills" / "review").mkdir(parents=True)
    (place / "skills" / "review" / "SKILL.md").write_text("---\nname: review\ndescription: description first\n---\n")
    result = node.result("tests/clients/node/generations.mjs", "local", str(place))
    assert result["told"] == {
        "first": ["description before"],
        "firstAfterTheTool": ["description during", "instructions during"],
        "second": ["description between"],
    }
    assert result["said"] == ["done", "done again"]
    assert (place / "notes.md").read_text() == "noted\n"
