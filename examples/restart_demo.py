"""A run that survives its daemon: notes are stored, a seeded skill never is.

``python examples/restart_demo.py [--redis URL | --sqlite PATH]``
"""

from stage import Stage, stage

from vfsd import connect

SKILL = """\
---
name: review
description: How this team reviews code
---
Read references/style.md first.
"""
STYLE = "Prefer short names.\n"
NOTES = "Half of the review is done.\n"


def main() -> None:
    """Seed, write, crash, come back."""
    with stage("Kill a vfsd daemon and see what is left.") as on:
        notes, skill = on.mountpoint / "notes" / "progress.md", on.mountpoint / "skills" / "review" / "SKILL.md"

        seed(on)
        notes.parent.mkdir()
        notes.write_text(NOTES)
        print("before the crash: ", *files(on))
        assert skill.read_text() == SKILL

        on.kill()
        print("the daemon was killed (SIGKILL)")
        on.mount()
        print("mounted again:    ", *files(on))
        assert notes.read_text() == NOTES, "acknowledged is stored"
        assert not skill.exists(), "what is seeded ends with the mount"
        assert on.store_holds(NOTES), "the notes are in the store"
        assert not on.store_holds("SKILL.md"), "nothing of the skill is"
        assert not on.store_holds(STYLE), "nothing of the skill is"

        seed(on)
        print("seeded again:     ", *files(on))
        assert skill.read_text() == SKILL


def seed(on: Stage) -> None:
    """Show the skill in the mount."""
    with connect(on.mountpoint) as vfs:
        vfs.seed_skill("skills/review", SKILL, {"style.md": STYLE})


def files(on: Stage) -> list[str]:
    """Return every file of the scope, seeded or stored."""
    with connect(on.mountpoint) as vfs:
        return vfs.list_all_paths()


if __name__ == "__main__":
    main()
