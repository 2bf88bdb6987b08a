"""The mount shows at once what a client did, whatever the kernel had cached: absence, names, attributes, pages."""

import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.support.mounted import PATIENCE, Mounted
from tests.support.store_comparison import assert_store_matches
from tests.support.syscalls import closing_fd
from vfsd import Vfs

LARGE = 200_000
STEPS = 100


def _known_to_be_absent(path: Path) -> None:
    for _ in range(2):
        assert not path.exists()


@pytest.mark.parametrize(
    "make",
    [
        lambda vfs: vfs.write_file("new", b"x"),
        lambda vfs: vfs.append_file("new", b"x"),
        lambda vfs: vfs.copy_file("there", "new"),
        lambda vfs: vfs.move_file("there", "new"),
        lambda vfs: vfs.mkdir("new"),
        lambda vfs: vfs.write_file("new/below", b"x", parents=True),
    ],
    ids=["write", "append", "copy", "move", "mkdir", "parents"],
)
def test_what_was_known_to_be_absent_is_there(top: Path, vfs: Vfs, make: Callable[[Vfs], object]) -> None:
    (top / "there").write_bytes(b"x")
    _known_to_be_absent(top / "new")
    make(vfs)
    assert (top / "new").exists()
    assert "new" in os.listdir(top)


@pytest.mark.parametrize(
    "remove",
    [
        lambda vfs: vfs.delete_file("d/file"),
        lambda vfs: vfs.move_file("d/file", "moved"),
        lambda vfs: vfs.rmdir("d", recursive=True),
        lambda vfs: vfs.move_file("d", "e"),
    ],
    ids=["delete", "move", "rmdir", "move above"],
)
def test_what_was_known_is_gone(top: Path, vfs: Vfs, remove: Callable[[Vfs], object]) -> None:
    (top / "d").mkdir()
    (top / "d/file").write_bytes(b"x")
    assert (top / "d/file").stat().st_size == 1
    remove(vfs)
    assert not (top / "d/file").exists()


def test_attributes_and_pages(top: Path, vfs: Vfs) -> None:
    file = top / "file"
    file.write_bytes(b"o" * LARGE)
    for content in (b"n" * LARGE, b"short", b"l" * 2 * LARGE, b""):
        file.read_bytes()
        file.stat()
        written = vfs.write_file("file", content)
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (len(content), written.mtime_ns)
        assert file.read_bytes() == content


def test_whoever_has_the_file_open_sees_the_new_content(top: Path, vfs: Vfs) -> None:
    (top / "file").write_bytes(b"o" * LARGE)
    with closing_fd(os.open(top / "file", os.O_RDWR)) as fd, mmap.mmap(fd, LARGE, mmap.MAP_SHARED) as mapped:
        assert mapped[-1:] == b"o"
        assert os.pread(fd, LARGE, 0) == b"o" * LARGE
        vfs.write_file("file", b"n" * LARGE)
        assert mapped[-1:] == b"n"
        assert os.pread(fd, 2 * LARGE, 0) == b"n" * LARGE
        vfs.append_file("file", b"more")
        assert os.fstat(fd).st_size == LARGE + 4
        assert os.pread(fd, 2 * LARGE, LARGE) == b"more"


@pytest.mark.parametrize("size", [1, 4096, 5000])
def test_an_append_over_an_open_descriptor_follows_what_a_client_appended(
    mounted: Mounted, vfs: Vfs, size: int
) -> None:
    file = mounted.path / "log"
    file.write_bytes(b"a" * size)
    with closing_fd(os.open(file, os.O_WRONLY | os.O_APPEND)) as fd:
        for _ in range(3):
            vfs.append_file("log", b"b" * size)
            os.write(fd, b"c" * size)
    assert file.read_bytes() == b"a" * size + (b"b" * size + b"c" * size) * 3
    assert_store_matches(mounted)


def test_an_open_file_that_was_deleted_lives_on(top: Path, vfs: Vfs) -> None:
    (top / "file").write_bytes(b"content")
    with closing_fd(os.open(top / "file", os.O_RDWR)) as fd:
        vfs.delete_file("file")
        assert os.fstat(fd).st_nlink == 0
        os.pwrite(fd, b"C", 0)
        assert os.pread(fd, 100, 0) == b"Content"
        vfs.write_file("file", b"another")
        assert os.pread(fd, 100, 0) == b"Content"
        assert (top / "file").read_bytes() == b"another"


def test_where_somebody_stands_is_moved_and_removed(top: Path, vfs: Vfs) -> None:
    (top / "d").mkdir()
    (top / "d/file").write_bytes(b"x")
    with closing_fd(os.open(top / "d", os.O_RDONLY | os.O_DIRECTORY)) as fd:
        vfs.move_file("d", "e")
        assert os.stat("file", dir_fd=fd).st_size == 1
        assert Path(f"/proc/self/fd/{fd}/file").read_bytes() == b"x"
        vfs.rmdir("e", recursive=True)
        assert os.fstat(fd).st_nlink == 0
        with pytest.raises(FileNotFoundError):
            os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=fd)


def test_what_is_in_a_directory_that_became_another(top: Path, vfs: Vfs) -> None:
    for name in ("one", "two"):
        (top / name).mkdir()
        (top / name / name).touch()
        assert os.listdir(top / name) == [name]
    vfs.rmdir("two", recursive=True)
    vfs.move_file("one", "two")
    assert os.listdir(top / "two") == ["one"]
    _known_to_be_absent(top / "one")


def test_clients_and_the_mount_at_once(mounted: Mounted, connected: Connect) -> None:
    """Both make, replace and remove the same few names: nobody may hang, and in the end mount and store agree."""

    def by_client(vfs: Vfs, step: int) -> None:
        vfs.write_file(f"d{step % 3}/file-{step % 4}", b"c" * (step * 300), parents=True)
        vfs.append_file(f"d{step % 2}/file-{step % 3}", b"more")
        if step % 5 == 0:
            vfs.rmdir(f"d{step % 3}", recursive=True, missing_ok=True)

    def by_mount(_vfs: Vfs, step: int) -> None:
        path = mounted.path / f"d{step % 3}" / f"file-{step % 4}"
        path.write_bytes(b"m" * (step * 300))
        with path.open("ab") as appending:
            appending.write(b"more")
        path.rename(path.with_name("renamed"))
        path.with_name("renamed").read_bytes()

    with ThreadPoolExecutor(6) as pool:
        clients = [connected(mounted) for _ in range(3)]
        working = [pool.submit(_repeat, act, vfs) for vfs in clients for act in (by_client, by_mount)]
        lost = sum(work.result(PATIENCE) for work in working)
    assert lost < 6 * STEPS
    assert_store_matches(mounted)


def _repeat(act: Callable[[Vfs, int], None], vfs: Vfs) -> int:
    """Do *act* again and again; return how often another was faster in taking a directory or a file away."""
    lost = 0
    for step in range(STEPS):
        try:
            act(vfs, step)
        except (FileNotFoundError, FileExistsError):
            lost += 1
    return lost
