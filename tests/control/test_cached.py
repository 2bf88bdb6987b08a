"""A client's change is visible through the mount at once, even if the kernel has cached the old state."""

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


def _assert_absent(path: Path) -> None:
    for _ in range(2):  # the second lookup may be answered from the kernel's cache
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
def test_a_new_name_is_visible_although_its_absence_was_cached(
    top: Path, vfs: Vfs, make: Callable[[Vfs], object]
) -> None:
    (top / "there").write_bytes(b"x")
    _assert_absent(top / "new")
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
def test_a_removed_name_is_gone_although_it_was_cached(top: Path, vfs: Vfs, remove: Callable[[Vfs], object]) -> None:
    (top / "d").mkdir()
    (top / "d/file").write_bytes(b"x")
    assert (top / "d/file").stat().st_size == 1
    remove(vfs)
    assert not (top / "d/file").exists()


def test_new_attributes_and_content_replace_cached_ones(top: Path, vfs: Vfs) -> None:
    file = top / "file"
    file.write_bytes(b"o" * LARGE)
    for content in (b"n" * LARGE, b"short", b"l" * 2 * LARGE, b""):
        file.read_bytes()
        file.stat()
        written = vfs.write_file("file", content)
        assert (file.stat().st_size, file.stat().st_mtime_ns) == (len(content), written.mtime_ns)
        assert file.read_bytes() == content


def test_an_open_file_shows_the_new_content(top: Path, vfs: Vfs) -> None:
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
def test_an_append_to_an_open_file_goes_after_the_append_of_a_client(mounted: Mounted, vfs: Vfs, size: int) -> None:
    file = mounted.path / "log"
    file.write_bytes(b"a" * size)
    with closing_fd(os.open(file, os.O_WRONLY | os.O_APPEND)) as fd:
        for _ in range(3):
            vfs.append_file("log", b"b" * size)
            os.write(fd, b"c" * size)
    assert file.read_bytes() == b"a" * size + (b"b" * size + b"c" * size) * 3
    assert_store_matches(mounted)


def test_an_open_file_survives_its_deletion(top: Path, vfs: Vfs) -> None:
    (top / "file").write_bytes(b"content")
    with closing_fd(os.open(top / "file", os.O_RDWR)) as fd:
        vfs.delete_file("file")
        assert os.fstat(fd).st_nlink == 0
        os.pwrite(fd, b"C", 0)
        assert os.pread(fd, 100, 0) == b"Content"
        vfs.write_file("file", b"another")
        assert os.pread(fd, 100, 0) == b"Content"
        assert (top / "file").read_bytes() == b"another"


def test_an_open_directory_is_moved_and_removed(top: Path, vfs: Vfs) -> None:
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


def test_a_directory_that_replaced_another_shows_its_own_names(top: Path, vfs: Vfs) -> None:
    for name in ("one", "two"):
        (top / name).mkdir()
        (top / name / name).touch()
        assert os.listdir(top / name) == [name]
    vfs.rmdir("two", recursive=True)
    vfs.move_file("one", "two")
    assert os.listdir(top / "two") == ["one"]
    _assert_absent(top / "one")


def test_clients_and_the_mount_concurrently(mounted: Mounted, connected: Connect) -> None:
    """They create, replace and remove the same few names. Nobody may hang, and at the end mount and store agree."""

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
        futures = [pool.submit(_repeat, act, vfs) for vfs in clients for act in (by_client, by_mount)]
        failed = sum(future.result(PATIENCE) for future in futures)
    assert failed < 6 * STEPS
    assert_store_matches(mounted)


def _repeat(act: Callable[[Vfs, int], None], vfs: Vfs) -> int:
    """Call *act* many times. Return how often it failed because another had changed the same name before."""
    failed = 0
    for step in range(STEPS):
        try:
            act(vfs, step)
        except (FileNotFoundError, FileExistsError):
            failed += 1
    return failed
