"""The pages of the command line: docs/cli.md, and the manual page that is made from it.

docs/cli.md has prose, which is written by hand, and generated parts between two comments. This package writes these
parts from the commands and from the table of exit statuses, and never changes the prose.
"""

import re
from collections.abc import Callable
from pathlib import Path

from tools.reference.commands import commands
from tools.reference.manual import manual
from vfsd.errors import EXIT_STATUS_MEANING

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, MANUAL = DOCS / "cli.md", DOCS / "vfsd.1"


def outdated() -> dict[Path, str]:
    """Return the pages that are out of date, each with the text it should have."""
    page = refreshed(PAGE.read_text())
    current = {PAGE: page, MANUAL: manual(page)}
    return {path: text for path, text in current.items() if not path.exists() or path.read_text() != text}


def refreshed(page: str) -> str:
    """Return *page* with its generated parts written again."""
    for name, generate in _PARTS.items():
        begin, end = f"<!-- begin: {name} (make docs writes this part) -->\n", f"<!-- end: {name} -->\n"
        before, middle, after = re.split(f"({re.escape(begin)}.*?{re.escape(end)})", page, flags=re.DOTALL)
        assert middle, f"the page needs one part {name}"
        page = f"{before}{begin}\n{generate()}\n\n{end}{after}"
    return page


def _exit_statuses() -> str:
    rows = [f"| {status} | {meaning} |" for status, meaning in sorted(EXIT_STATUS_MEANING.items())]
    return "\n".join(["| status | cause |", "|---|---|", *rows])


_PARTS: dict[str, Callable[[], str]] = {"commands": commands, "exit statuses": _exit_statuses}
