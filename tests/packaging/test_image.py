"""The Dockerfile and what is sent to its builder, as far as that can be judged without building."""

import fnmatch
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile, continued lines joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    words = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(word, rest) for word, rest in words]


def sent(name: str) -> bool:
    """Whether ``.dockerignore`` lets *name*, in the checkout's root, through to the builder."""
    through = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(name, pattern):
            through = line.startswith("!")
    return through


def test_what_is_copied_exists_and_is_sent() -> None:
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert {"pyproject.toml", "vfsd"} <= set(copied)
    assert all((ROOT / source).exists() and sent(source) for source in copied)


def test_nothing_else_is_sent() -> None:
    assert not any(sent(name) for name in (".git", ".venv", "vfsd.db", "mnt", "tests", "secret.env"))


def test_it_runs_vfsd_from_where_the_builder_put_it() -> None:
    found = instructions()
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["vfsd"]
    assert ("COPY", "--from=builder /opt/vfsd /opt/vfsd") in found
    assert sum(word == "FROM" for word, _ in found) == 2
    bases = {rest.split()[0] for word, rest in found if word == "FROM"}
    assert len(bases) == 1, "the runtime has the Python and libfuse that the builder compiled for"


def test_nothing_but_the_environment_holds_the_store() -> None:
    assert not [rest for word, rest in instructions() if word in ("ENV", "ARG") and "STORE" in rest]
