"""``make docs``: write docs/cli.md and docs/vfsd.1 again, from the commands of vfsd."""

from tools.reference.pages import outdated

for path, text in outdated().items():
    path.write_text(text)
    print(f"wrote {path}")  # noqa: T201 (a maintainer reads it)
