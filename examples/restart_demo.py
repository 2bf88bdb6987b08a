"""Kill the daemon of a mount: notes are stored and come back, a seeded skill is never stored.

``.venv/bin/python examples/restart_demo.py [--redis URL | --sqlite PATH]``
"""

from demo_mount import DemoMount, demo_mount

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
    """Seed a skill, write notes, kill the daemon, and mount again."""
    with demo_mount("Kill a vfsd daemon and show which files are left.") as demo:
        notes, skill = demo.mountpoint / "notes" / "progress.md", demo.mountpoint / "skills" / "review" / "SKILL.md"

        seed(demo)
        notes.parent.mkdir()
        notes.write_text(NOTES)
        print("before the crash: ", *files(demo))
        assert skill.read_text() == SKILL

        demo.kill()
        print("the daemon was killed (SIGKILL)")
        demo.mount()
        print("mounted again:    ", *files(demo))
        assert notes.read_text() == NOTES, "an acknowledged write is stored"
        assert not skill.exists(), "a seed ends with the mount"
        assert demo.store_holds(NOTES), "the notes are in the store"
        assert not demo.store_holds("SKILL.md"), "no part of the skill is in the store"
        assert not demo.store_holds(STYLE), "no part of the skill is in the store"

        seed(demo)
        print("seeded again:     ", *files(demo))
        assert skill.read_text() == SKILL


def seed(demo: DemoMount) -> None:
    """Seed the skill into the mount."""
    with connect(demo.mountpoint) as vfs:
        vfs.seed_skill("skills/review", SKILL, {"style.md": STYLE})


def files(demo: DemoMount) -> list[str]:
    """Return the paths of all files of the scope, seeded or stored."""
    with connect(demo.mountpoint) as vfs:
        return vfs.list_all_paths()


if __name__ == "__main__":
    main()
