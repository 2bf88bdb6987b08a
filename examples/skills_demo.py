"""Seed a skill from strings, and read it as files: by its path, and by the short path that a model often uses.

``.venv/bin/python examples/skills_demo.py [--redis URL | --sqlite PATH]``
"""

from demo_mount import demo_mount

from vfsd import connect

SKILL = """\
---
name: brand
description: Colours and voice of the brand
---
Colours are in references/colours.md.
"""
COLOURS = "Ink #1b1b1f, paper #fdfcf8.\n"


def main() -> None:
    """Seed one skill, and read its reference by two paths."""
    with (
        demo_mount("Seed a skill from strings and read it through the mount.") as demo,
        connect(demo.mountpoint) as vfs,
    ):
        vfs.seed_skill("skills/brand", SKILL, {"colours.md": COLOURS})
        print("skills/brand/SKILL.md says:", SKILL.splitlines()[-1])

        for path in ("skills/brand/references/colours.md", "references/colours.md"):
            text = (demo.mountpoint / path).read_text()
            print(f"{path}: {text.strip()}")
            assert text == COLOURS

        listed = [path.name for path in demo.mountpoint.iterdir()]
        print("ls shows only:", *listed)
        assert listed == ["skills"], "a short path can be read, but it is not listed"
        for skill in vfs.seed_list().skills:
            print(f"seeded: {skill.name}, {skill.description!r}, {len(skill.files)} files")


if __name__ == "__main__":
    main()
