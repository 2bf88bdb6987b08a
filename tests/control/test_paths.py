"""How paths are resolved: prefixes, dots, links inside the scope, and links out of it."""

import errno
import os
from pathlib import Path

import pytest

from vfsd import Vfs


@pytest.fixture
def tree(top: Path) -> Path:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").write_bytes(b"content")
    return top


@pytest.mark.parametrize(
    "path",
    ["a/b/file", "/a/b/file", "//a///b/file", "./a/./b/file", "a/../a/b/file", "../../a/b/file", "a/b/../b/file"],
)
def test_paths_of_the_same_file(tree: Path, vfs: Vfs, path: str) -> None:
    assert vfs.read_file(path) == b"content"
    assert vfs.realpath(path) == os.fspath(tree / "a/b/file")


def test_an_absolute_path_below_the_mountpoint(tree: Path, vfs: Vfs) -> None:
    assert vfs.read_file(tree / "a/b/file") == b"content"
    assert vfs.readdir(tree) == vfs.readdir("") == vfs.readdir("/") == ["a"]
    assert vfs.realpath("") == os.fspath(tree)
    with pytest.raises(FileNotFoundError):
        vfs.read_file(f"{tree}-sibling/a/b/file")


def test_a_slash_at_the_end_means_a_directory(tree: Path, vfs: Vfs) -> None:
    assert vfs.exists("a/b/")
    for path in ("a/b/file/", "a/b/file/.", "a/b/file/.."):
        with pytest.raises(NotADirectoryError):
            vfs.stat(path)
        assert not vfs.exists(path)


@pytest.mark.parametrize("target", ["a/b/file", "./a/../a/b/file", "first", "{top}/a/b/file"])
def test_links_inside_the_scope_are_followed(tree: Path, vfs: Vfs, target: str) -> None:
    (tree / "first").symlink_to("a/b/file")
    (tree / "link").symlink_to(target.format(top=tree))
    assert vfs.read_file("link") == b"content"
    vfs.write_file("link", b"through the link")
    assert (tree / "a/b/file").read_bytes() == b"through the link"
    assert vfs.realpath("link") == os.fspath(tree / "a/b/file")
    assert (tree / "link").is_symlink()


def test_links_to_directories_are_followed(tree: Path, vfs: Vfs) -> None:
    (tree / "a/up").symlink_to("..")
    (tree / "short").symlink_to("a/b")
    assert vfs.read_file("short/../up/a/b/file") == b"content"
    assert vfs.readdir("short") == ["file"]
    vfs.write_file("short/new/file", b"", parents=True)
    assert (tree / "a/b/new/file").exists()
    vfs.delete_file("short")
    assert (tree / "a/b/file").exists()


def test_a_write_through_a_dangling_link_creates_its_target(tree: Path, vfs: Vfs) -> None:
    (tree / "link").symlink_to("a/new")
    assert not vfs.exists("link")
    vfs.write_file("link", b"content")
    assert (tree / "a/new").read_bytes() == b"content"


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "a/../../outside", "{top}-sibling/file", "{top}/../x", "/"]
)
def test_links_out_of_the_scope_are_refused(tree: Path, vfs: Vfs, target: str) -> None:
    outside = tree.parent / "outside"
    outside.write_bytes(b"kept")
    (tree / "out").symlink_to(target.format(top=tree))
    for call in (
        lambda: vfs.read_file("out"),
        lambda: vfs.write_file("out", b"x"),
        lambda: vfs.append_file("out", b"x"),
        lambda: vfs.copy_file("a/b/file", "out"),
        lambda: vfs.stat("out/below"),
        lambda: vfs.realpath("out"),
        lambda: vfs.mkdir("out/below", parents=True),
    ):
        with pytest.raises(OSError, match="cross-device") as caught:
            call()
        assert caught.value.errno == errno.EXDEV
    assert not vfs.exists("out")
    assert outside.read_bytes() == b"kept"
    assert vfs.stat("out", follow_symlinks=False).type == "symlink"
    vfs.move_file("out", "moved")
    assert vfs.delete_file("moved")


def test_a_loop_of_links_is_refused(top: Path, vfs: Vfs) -> None:
    (top / "one").symlink_to("two")
    (top / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links") as caught:
        vfs.read_file("one")
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize(("links", "works"), [(40, True), (41, False)])
def test_the_most_links_are_as_many_as_in_the_kernel(tree: Path, vfs: Vfs, links: int, works: bool) -> None:
    last = "a/b/file"
    for number in range(links):
        (tree / f"link-{number}").symlink_to(last)
        last = f"link-{number}"
    assert vfs.exists(last) is works
    assert (tree / last).exists() is works
