"""A skill made of strings, read as files: by its path, and by the path that a model is likely to take for it.

``python examples/skills_demo.py [--redis URL | --sqlite PATH]``
"""

from stage import stage

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
    """Seed one skill, and read its reference in two ways."""
    with stage("Seed a skill from strings and read it through the mount.") as on, connect(on.mountpoint) as vfs:
        vfs.seed_skill("skills/brand", SKILL, {"colours.md": COLOURS})
        print("skills/brand/SKILL.md says:", SKILL.splitlines()[-1])

        for path in ("skills/brand/references/colours.md", "references/colours.md"):
            text = (on.mountpoint / path).read_text()
            print(f"{path}: {text.strip()}")
            assert text == COLOURS

        listed = [path.name for path in on.mountpoint.iterdir()]
        print("ls shows only:", *listed)
        assert listed == ["skills"], "a path that was guessed is answered, and listed nowhere"
        for skill in vfs.seed_list().skills:
            print(f"seeded: {skill.name}, {skill.description!r}, {len(skill.files)} files")


if __name__ == "__main__":
    main()
