"""Every method of deepagents' FilesystemBackend on DIRECTORY, an empty one; prints what each gave, as JSON.

Runs under an interpreter of its own, which has no vfsd. Where results must differ between two directories (where they
lie, when something happened, in which order things are listed) they are made alike here.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend  # type: ignore[import-not-found]  # has an interpreter of its own

Step = tuple[str, Callable[[], Any]]


def steps(backend: FilesystemBackend, place: Path) -> Iterator[Step]:
    """Yield the table: a name, and a call."""
    yield from writing(backend)
    yield from listing(backend)
    yield from links(backend, place)
    yield from removing(backend)


def writing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield what writes, reads and edits."""
    lines = "".join(f"line {number}\n" for number in range(50))
    yield "write", lambda: backend.write("/notes/a.md", "one\ntwo\none\n")
    yield "read", lambda: backend.read("/notes/a.md")
    yield "read a part", lambda: backend.read("/notes/a.md", offset=1, limit=1)
    yield "read nothing", lambda: backend.read("/none.md")
    yield "read a directory", lambda: backend.read("/notes")
    yield "read outside", lambda: backend.read("/../etc/passwd")
    yield "write over", lambda: backend.write("/notes/a.md", "uno\ndos\nuno\n")
    yield "write long", lambda: backend.write("/notes/long.md", lines)
    yield "read its end", lambda: backend.read("/notes/long.md", offset=45)
    yield "read beyond its end", lambda: backend.read("/notes/long.md", offset=500)
    yield "write nothing", lambda: backend.write("/empty.md", "")
    yield "read nothing written", lambda: backend.read("/empty.md")
    yield "write below a file", lambda: backend.write("/notes/a.md/b", "x")
    yield "write a directory", lambda: backend.write("/notes", "x")
    yield "write other scripts", lambda: backend.write("/名前 🗂.md", "grüße\n")
    yield "read them", lambda: backend.read("/名前 🗂.md")
    yield "write a MiB", lambda: backend.write("/src/big.txt", "x" * 2**20)
    yield "edit what is there twice", lambda: backend.edit("/notes/a.md", "uno", "eins")
    yield "edit all", lambda: backend.edit("/notes/a.md", "uno", "eins", replace_all=True)
    yield "edit one", lambda: backend.edit("/notes/a.md", "dos", "zwei")
    yield "edit in vain", lambda: backend.edit("/notes/a.md", "nowhere", "x")
    yield "edit nothing", lambda: backend.edit("/none.md", "a", "b")
    yield "read the edits", lambda: backend.read("/notes/a.md")
    yield "upload", lambda: backend.upload_files([("/up/one.bin", bytes(range(256))), ("/up/two.bin", b"")])
    yield "download", lambda: backend.download_files(["/up/one.bin", "/up/two.bin", "/none", "/up"])


def listing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield what lists and searches."""
    yield "ls", lambda: backend.ls("/")
    yield "ls below", lambda: backend.ls("/notes")
    yield "ls nothing", lambda: backend.ls("/none")
    yield "ls a file", lambda: backend.ls("/notes/a.md")
    yield "glob", lambda: backend.glob("**/*.md")
    yield "glob below", lambda: backend.glob("*.md", path="/notes")
    yield "glob in vain", lambda: backend.glob("*.none")
    yield "glob nowhere", lambda: backend.glob("*", path="/none")
    yield "grep", lambda: backend.grep("eins")
    yield "grep one kind", lambda: backend.grep("line 1", glob="*.md")
    yield "grep with context", lambda: backend.grep("zwei", context_lines=1)
    yield "grep a few", lambda: backend.grep("line", path="/notes/long.md", max_count=3)
    yield "grep in vain", lambda: backend.grep("nowhere")
    yield "grep nowhere", lambda: backend.grep("eins", path="/none")


def links(backend: FilesystemBackend, place: Path) -> Iterator[Step]:
    """Yield what meets symbolic links."""
    yield "make links", lambda: make_links(place)
    yield "read through one", lambda: backend.read("/link.md")
    yield "write through one", lambda: backend.write("/link.md", "linked\n")
    yield "read a loop", lambda: backend.read("/loop.md")
    yield "ls links", lambda: backend.ls("/")
    yield "glob links", lambda: backend.glob("*.md")


def make_links(place: Path) -> None:
    """Make a link that leads somewhere and one that leads to itself."""
    (place / "link.md").symlink_to("notes/a.md")
    (place / "loop.md").symlink_to("loop.md")


def removing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield what deletes."""
    yield "delete", lambda: backend.delete("/empty.md")
    yield "delete a tree", lambda: backend.delete("/notes")
    yield "delete nothing", lambda: backend.delete("/none.md")
    yield "ls what is left", lambda: backend.ls("/")


def outcome(call: Callable[[], Any], place: Path) -> Any:
    """Return what *call* returned or raised, with nothing in it that depends on *place* or on the time."""
    try:
        return {"gave": plain(call(), place)}
    except Exception as error:  # noqa: BLE001 (whatever it raises is what is compared)
        return {"raised": type(error).__name__, "said": plain(str(error), place)}


def plain(value: Any, place: Path) -> Any:
    """Return *value* as JSON can carry it."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value), place)
    if isinstance(value, dict):
        return {key: "TIME" if key == "modified_at" else plain(item, place) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((plain(item, place) for item in value), key=json.dumps)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", value.replace(str(place), "BASE"))
    return value


def main() -> None:
    """Run the table."""
    place = Path(sys.argv[1])
    backend = FilesystemBackend(root_dir=place, virtual_mode=True)
    print(json.dumps({name: outcome(call, place) for name, call in steps(backend, place)}))


if __name__ == "__main__":
    main()
