"""What a path means: beginnings, dots, links inside the scope, links out of it."""

import errno
import os
from pathlib import Path

import pytest

from vfsd import Vfs


@pytest.fixture
def laid_out(top: Path) -> Path:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/file").write_bytes(b"content")
    return top


@pytest.mark.parametrize(
    "path",
    ["a/b/file", "/a/b/file", "//a///b/file", "./a/./b/file", "a/../a/b/file", "../../a/b/file", "a/b/../b/file"],
)
def test_ways_to_a_file(laid_out: Path, vfs: Vfs, path: str) -> None:
    assert vfs.read_file(path) == b"content"
    assert vfs.realpath(path) == os.fspath(laid_out / "a/b/file")


def test_an_absolute_path_below_the_mountpoint(laid_out: Path, vfs: Vfs) -> None:
    assert vfs.read_file(laid_out / "a/b/file") == b"content"
    assert vfs.readdir(laid_out) == vfs.readdir("") == vfs.readdir("/") == ["a"]
    assert vfs.realpath("") == os.fspath(laid_out)
    with pytest.raises(FileNotFoundError):
        vfs.read_file(f"{laid_out}beside/a/b/file")


def test_a_slash_at_the_end_means_a_directory(laid_out: Path, vfs: Vfs) -> None:
    assert vfs.exists("a/b/")
    for path in ("a/b/file/", "a/b/file/.", "a/b/file/.."):
        with pytest.raises(NotADirectoryError):
            vfs.stat(path)
        assert not vfs.exists(path)


@pytest.mark.parametrize("target", ["a/b/file", "./a/../a/b/file", "first", "{top}/a/b/file"])
def test_links_inside_are_followed(laid_out: Path, vfs: Vfs, target: str) -> None:
    (laid_out / "first").symlink_to("a/b/file")
    (laid_out / "link").symlink_to(target.format(top=laid_out))
    assert vfs.read_file("link") == b"content"
    vfs.write_file("link", b"by the link")
    assert (laid_out / "a/b/file").read_bytes() == b"by the link"
    assert vfs.realpath("link") == os.fspath(laid_out / "a/b/file")
    assert (laid_out / "link").is_symlink()


def test_directories_are_reached_by_links(laid_out: Path, vfs: Vfs) -> None:
    (laid_out / "a/up").symlink_to("..")
    (laid_out / "short").symlink_to("a/b")
    assert vfs.read_file("short/../up/a/b/file") == b"content"
    assert vfs.readdir("short") == ["file"]
    vfs.write_file("short/new/file", b"", parents=True)
    assert (laid_out / "a/b/new/file").exists()
    vfs.delete_file("short")
    assert (laid_out / "a/b/file").exists()


def test_a_link_to_nothing_yet(laid_out: Path, vfs: Vfs) -> None:
    (laid_out / "link").symlink_to("a/later")
    assert not vfs.exists("link")
    vfs.write_file("link", b"now")
    assert (laid_out / "a/later").read_bytes() == b"now"


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "../outside", "a/../../outside", "{top}beside/file", "{top}/../x", "/"]
)
def test_links_out_are_refused(laid_out: Path, vfs: Vfs, target: str) -> None:
    outside = laid_out.parent / "outside"
    outside.write_bytes(b"kept")
    (laid_out / "out").symlink_to(target.format(top=laid_out))
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


def test_links_in_a_circle(top: Path, vfs: Vfs) -> None:
    (top / "one").symlink_to("two")
    (top / "two").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links") as caught:
        vfs.read_file("one")
    assert caught.value.errno == errno.ELOOP


@pytest.mark.parametrize(("links", "works"), [(40, True), (41, False)])
def test_as_many_links_as_the_kernel_follows(laid_out: Path, vfs: Vfs, links: int, works: bool) -> None:
    last = "a/b/file"
    for number in range(links):
        (laid_out / f"link-{number}").symlink_to(last)
        last = f"link-{number}"
    assert vfs.exists(last) is works
    assert (laid_out / last).exists() is works
