"""Call every method of deepagents' FilesystemBackend on the empty DIRECTORY, and print the results as JSON.

The program runs with a separate interpreter that has no vfsd. Some parts of a result always differ between two
directories: the path, the time and the order of a listing. This program replaces them with equal values.
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


def steps(backend: FilesystemBackend, directory: Path) -> Iterator[Step]:
    """Yield all steps: a name, and a call."""
    yield from writing(backend)
    yield from listing(backend)
    yield from links(backend, directory)
    yield from removing(backend)


def writing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield the steps that write, read and edit."""
    lines = "".join(f"line {number}\n" for number in range(50))
    yield "write", lambda: backend.write("/notes/a.md", "one\ntwo\none\n")
    yield "read", lambda: backend.read("/notes/a.md")
    yield "read a part", lambda: backend.read("/notes/a.md", offset=1, limit=1)
    yield "read a missing file", lambda: backend.read("/none.md")
    yield "read a directory", lambda: backend.read("/notes")
    yield "read outside", lambda: backend.read("/../etc/passwd")
    yield "write over", lambda: backend.write("/notes/a.md", "uno\ndos\nuno\n")
    yield "write long", lambda: backend.write("/notes/long.md", lines)
    yield "read its end", lambda: backend.read("/notes/long.md", offset=45)
    yield "read beyond its end", lambda: backend.read("/notes/long.md", offset=500)
    yield "write an empty file", lambda: backend.write("/empty.md", "")
    yield "read the empty file", lambda: backend.read("/empty.md")
    yield "write below a file", lambda: backend.write("/notes/a.md/b", "x")
    yield "write a directory", lambda: backend.write("/notes", "x")
    yield "write other scripts", lambda: backend.write("/名前 🗂.md", "grüße\n")
    yield "read them", lambda: backend.read("/名前 🗂.md")
    yield "write a MiB", lambda: backend.write("/src/big.txt", "x" * 2**20)
    yield "edit a text that occurs twice", lambda: backend.edit("/notes/a.md", "uno", "eins")
    yield "edit all", lambda: backend.edit("/notes/a.md", "uno", "eins", replace_all=True)
    yield "edit one", lambda: backend.edit("/notes/a.md", "dos", "zwei")
    yield "edit without a match", lambda: backend.edit("/notes/a.md", "nowhere", "x")
    yield "edit a missing file", lambda: backend.edit("/none.md", "a", "b")
    yield "read the edits", lambda: backend.read("/notes/a.md")
    yield "upload", lambda: backend.upload_files([("/up/one.bin", bytes(range(256))), ("/up/two.bin", b"")])
    yield "download", lambda: backend.download_files(["/up/one.bin", "/up/two.bin", "/none", "/up"])


def listing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield the steps that list and search."""
    yield "ls", lambda: backend.ls("/")
    yield "ls below", lambda: backend.ls("/notes")
    yield "ls a missing directory", lambda: backend.ls("/none")
    yield "ls a file", lambda: backend.ls("/notes/a.md")
    yield "glob", lambda: backend.glob("**/*.md")
    yield "glob below", lambda: backend.glob("*.md", path="/notes")
    yield "glob without a match", lambda: backend.glob("*.none")
    yield "glob a missing directory", lambda: backend.glob("*", path="/none")
    yield "grep", lambda: backend.grep("eins")
    yield "grep one kind", lambda: backend.grep("line 1", glob="*.md")
    yield "grep with context", lambda: backend.grep("zwei", context_lines=1)
    yield "grep a few", lambda: backend.grep("line", path="/notes/long.md", max_count=3)
    yield "grep without a match", lambda: backend.grep("nowhere")
    yield "grep a missing directory", lambda: backend.grep("eins", path="/none")


def links(backend: FilesystemBackend, directory: Path) -> Iterator[Step]:
    """Yield the steps with symbolic links."""
    yield "make links", lambda: make_links(directory)
    yield "read through one", lambda: backend.read("/link.md")
    yield "write through one", lambda: backend.write("/link.md", "linked\n")
    yield "read a loop", lambda: backend.read("/loop.md")
    yield "ls links", lambda: backend.ls("/")
    yield "glob links", lambda: backend.glob("*.md")


def make_links(directory: Path) -> None:
    """Make a link to a file and a link to itself."""
    (directory / "link.md").symlink_to("notes/a.md")
    (directory / "loop.md").symlink_to("loop.md")


def removing(backend: FilesystemBackend) -> Iterator[Step]:
    """Yield the steps that delete."""
    yield "delete", lambda: backend.delete("/empty.md")
    yield "delete a tree", lambda: backend.delete("/notes")
    yield "delete a missing file", lambda: backend.delete("/none.md")
    yield "ls what is left", lambda: backend.ls("/")


def outcome(call: Callable[[], Any], directory: Path) -> Any:
    """Return the result or the error of *call*, without the parts that depend on *directory* or on the time."""
    try:
        return {"gave": plain(call(), directory)}
    except Exception as error:  # noqa: BLE001 (the comparison includes every error)
        return {"raised": type(error).__name__, "message": plain(str(error), directory)}


def plain(value: Any, directory: Path) -> Any:
    """Return *value* in a form that JSON can represent."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value), directory)
    if isinstance(value, dict):
        return {key: "TIME" if key == "modified_at" else plain(item, directory) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((plain(item, directory) for item in value), key=json.dumps)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str):
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:.+]+", "TIME", value.replace(str(directory), "BASE"))
    return value


def main() -> None:
    """Run all steps."""
    directory = Path(sys.argv[1])
    backend = FilesystemBackend(root_dir=directory, virtual_mode=True)
    print(json.dumps({name: outcome(call, directory) for name, call in steps(backend, directory)}))


if __name__ == "__main__":
    main()
