"""The FilesystemBackend of LangChain deepagents has the same results on a mount as on tmpfs."""

from pathlib import Path

from tests.clients.frameworks import run_python
from tests.support.mounted import MountFactory
from tests.support.servers import RedisServer


def test_the_backend_has_the_results_of_tmpfs(
    deepagents: Path, mount: MountFactory, redis_server: RedisServer, tmpfs: Path
) -> None:
    program = "tests/clients/python/backend.py"
    expected = run_python(deepagents, program, str(tmpfs))
    assert run_python(deepagents, program, str(mount(redis_server.url).path)) == expected
    assert expected["edit all"]["gave"]["occurrences"] == 2
    assert [match["path"] for match in expected["glob below"]["gave"]["matches"]] == ["/notes/a.md", "/notes/long.md"]
    assert len(expected["grep"]["gave"]["matches"]) == 2
    assert not any("raised" in outcome for name, outcome in expected.items() if "outside" not in name)


def test_the_prompt_of_an_agent_contains_seeded_skills(
    deepagents: Path, mount: MountFactory, redis_server: RedisServer
) -> None:
    mounted = mount(redis_server.url)
    skill_md = "---\nname: review\ndescription: How this team reviews code\n---\nWith care.\n"
    assert mounted.vfsd("skill", "add", str(mounted.path), "-", text=skill_md).returncode == 0
    (prompt,) = run_python(deepagents, "tests/clients/python/skills.py", str(mounted.path))
    assert "How this team reviews code" in prompt
    assert "/skills/review/SKILL.md" in prompt
