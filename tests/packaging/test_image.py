"""The Dockerfile and ``.dockerignore``, as far as a test can check them without a build."""

import fnmatch
import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile. Continued lines are joined."""
    lines = [line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    words = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(word, rest) for word, rest in words]


def is_sent(name: str) -> bool:
    """Whether *name*, in the root of the checkout, is sent to the builder according to ``.dockerignore``."""
    result = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(name, pattern):
            result = line.startswith("!")
    return result


def test_all_copied_files_exist_and_are_sent() -> None:
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert {"pyproject.toml", "vfsd"} <= set(copied)
    assert all((ROOT / source).exists() and is_sent(source) for source in copied)


def test_other_files_are_not_sent() -> None:
    assert not any(is_sent(name) for name in (".git", ".venv", "vfsd.db", "mnt", "tests", "secret.env"))


def test_the_entry_point_is_vfsd_from_the_builder() -> None:
    found = instructions()
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["vfsd"]
    assert ("COPY", "--from=builder /opt/vfsd /opt/vfsd") in found
    assert sum(word == "FROM" for word, _ in found) == 2
    bases = {rest.split()[0] for word, rest in found if word == "FROM"}
    assert len(bases) == 1, "the runtime needs the same Python and libfuse as the builder"


def test_the_image_contains_no_store_url() -> None:
    assert not [rest for word, rest in instructions() if word in ("ENV", "ARG") and "STORE" in rest]
