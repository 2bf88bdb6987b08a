"""Reading and writing whole files: the mount shows what a client writes, and a client what the mount writes."""

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.mounted import Mounted
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count
from vfsd import Vfs

BINARY = bytes(range(256)) * 300
MIB = 1 << 20


@pytest.mark.parametrize("content", [b"", b"text", BINARY, bytes(50_000), os.urandom(3 * MIB)], ids=len)
def test_a_file_is_written_and_read(top: Path, vfs: Vfs, content: bytes) -> None:
    written = vfs.write_file("file", content)
    status = (top / "file").stat()
    assert (top / "file").read_bytes() == content
    assert written == (status.st_mtime_ns, len(content), True)
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_nlink) == (0o644, os.geteuid(), 1)
    assert vfs.read_file("file") == content
    (top / "other").write_bytes(content)
    assert vfs.read_file("other") == content


def test_text_is_encoded_as_utf_8(top: Path, vfs: Vfs) -> None:
    vfs.write_file("text", "grüße\n")
    assert (top / "text").read_bytes() == "grüße\n".encode()
    assert vfs.read_file("text", encoding="utf-8") == "grüße\n"


@pytest.mark.parametrize(("offset", "length"), [(0, 10), (16_380, 10), (100, None), (99_999, 50), (100_000, 1), (2, 0)])
def test_a_part_of_a_file_is_read(top: Path, vfs: Vfs, offset: int, length: int | None) -> None:
    content = os.urandom(100_000)
    (top / "file").write_bytes(content)
    end = None if length is None else offset + length
    assert vfs.read_file("file", offset=offset, length=length) == content[offset:end]


@pytest.mark.parametrize("before", [0, 5, 16_384, 100_000])
@pytest.mark.parametrize("after", [0, 3, 16_384, 40_000])
def test_new_content_replaces_all_of_the_old(mounted: Mounted, vfs: Vfs, before: int, after: int) -> None:
    file = mounted.path / "file"
    vfs.write_file("file", os.urandom(before))
    content = os.urandom(after)
    assert vfs.write_file("file", content).created is False
    assert file.read_bytes() == content
    assert_store_matches(mounted)


def test_a_write_keeps_inode_owner_mode_and_links(top: Path, vfs: Vfs) -> None:
    (top / "file").write_bytes(b"old")
    (top / "file").chmod(0o4710)
    os.chown(top / "file", 1001, 1002)
    os.link(top / "file", top / "other")
    before = (top / "file").stat()
    vfs.write_file("file", b"new content", mode=0o600)
    after = (top / "other").stat()
    assert (top / "other").read_bytes() == b"new content"
    assert (after.st_ino, after.st_mode, after.st_uid, after.st_gid, after.st_nlink) == (
        (before.st_ino, before.st_mode, before.st_uid, before.st_gid, 2)
    )
    assert after.st_mtime_ns > before.st_mtime_ns


def test_a_write_that_creates_file_and_directories_is_one_commit(
    mounted: Mounted, vfs: Vfs, redis_server: RedisServer
) -> None:
    count = commit_count(redis_server, mounted.scope)
    written = vfs.write_file("a/b/c/file", BINARY, parents=True, mode=0o640)
    assert commit_count(redis_server, mounted.scope) == count + 1
    assert (mounted.path / "a/b/c/file").read_bytes() == BINARY
    assert stat.S_IMODE((mounted.path / "a/b/c/file").stat().st_mode) == 0o640
    assert [(mounted.path / path).stat().st_nlink for path in (".", "a", "a/b", "a/b/c")] == [3, 3, 3, 2]
    assert written.created
    vfs.write_file("a/b/c/file", b"again", parents=True)
    assert commit_count(redis_server, mounted.scope) == count + 2
    assert_store_matches(mounted)


def test_new_directories_inherit_the_group_of_a_set_group_id_directory(top: Path, vfs: Vfs) -> None:
    (top / "shared").mkdir()
    os.chown(top / "shared", 0, 1002)
    (top / "shared").chmod(0o2775)
    vfs.write_file("shared/a/file", b"", parents=True)
    assert (top / "shared/a/file").stat().st_gid == 1002
    assert (top / "shared/a").stat().st_mode & stat.S_ISGID


def test_an_append_goes_to_the_end(mounted: Mounted, vfs: Vfs) -> None:
    file = mounted.path / "sub/log"
    assert vfs.append_file("sub/log", b"one", parents=True) == (file.stat().st_mtime_ns, 3, True)
    with file.open("ab") as appending:
        appending.write(b"two")
    assert vfs.append_file("sub/log", BINARY) == (file.stat().st_mtime_ns, 6 + len(BINARY), False)
    assert vfs.append_file("sub/log", b"") == (file.stat().st_mtime_ns, 6 + len(BINARY), False)
    assert file.read_bytes() == b"onetwo" + BINARY
    assert_store_matches(mounted)


def test_a_copy(mounted: Mounted, vfs: Vfs) -> None:
    top = mounted.path
    (top / "source").write_bytes(BINARY)
    (top / "source").chmod(0o755)
    (top / "existing").write_bytes(os.urandom(100_000))
    assert vfs.copy_file("source", "new/target", parents=True).created
    assert vfs.copy_file("source", "existing").created is False
    (top / "source").write_bytes(b"other")
    for path in (top / "new/target", top / "existing"):
        assert path.read_bytes() == BINARY
    assert stat.S_IMODE((top / "new/target").stat().st_mode) == 0o755
    assert stat.S_IMODE((top / "existing").stat().st_mode) == 0o644
    with pytest.raises(FileExistsError):
        vfs.copy_file("source", "existing", overwrite=False)
    with pytest.raises(OSError, match="same file") as caught:
        vfs.copy_file("source", "./source")
    assert (caught.value.errno, caught.value.filename, caught.value.filename2) == (errno.EINVAL, "source", "./source")
    assert_store_matches(mounted)


def test_create_only(top: Path, vfs: Vfs) -> None:
    assert vfs.write_file("file", b"first", create_only=True).created
    with pytest.raises(FileExistsError):
        vfs.write_file("file", b"second", create_only=True)
    (top / "link").symlink_to("nowhere")
    with pytest.raises(FileExistsError):
        vfs.write_file("link", b"", create_only=True)
    assert (top / "file").read_bytes() == b"first"
    assert not (top / "nowhere").exists()


def test_a_write_that_is_impossible_raises_the_error_of_its_errno(top: Path, vfs: Vfs) -> None:
    (top / "directory").mkdir()
    os.mkfifo(top / "fifo")
    (top / "file").touch()
    for path, kind in [("directory", IsADirectoryError), (".", IsADirectoryError), ("new/", IsADirectoryError)]:
        with pytest.raises(kind):
            vfs.write_file(path, b"")
    with pytest.raises(OSError, match="not a regular file"):
        vfs.append_file("fifo", b"x")
    for path, error in [("missing/file", FileNotFoundError), ("file/below", NotADirectoryError)]:
        with pytest.raises(error):
            vfs.write_file(path, b"")
    with pytest.raises(NotADirectoryError):
        vfs.write_file("file/below", b"", parents=True)
    assert sorted(os.listdir(top)) == ["directory", "fifo", "file"]


def test_64_mib_are_the_most_in_one_step(mounted: Mounted, vfs: Vfs) -> None:
    content = os.urandom(MIB) * 64
    vfs.write_file("large", content)
    assert (mounted.path / "large").read_bytes() == content
    assert vfs.read_file("large") == content
    with pytest.raises(OSError, match="more than 64 MiB in one step; write it through the mount") as caught:
        vfs.write_file("large", content + b"x")
    assert caught.value.errno == errno.EFBIG
    with (mounted.path / "large").open("ab") as appending:
        appending.write(b"x")
    for call in (lambda: vfs.read_file("large"), lambda: vfs.copy_file("large", "copy")):
        with pytest.raises(OSError, match="64 MiB"):
            call()
    assert vfs.read_file("large", offset=64 * MIB - 1) == content[-1:] + b"x"
    assert os.listdir(mounted.path) == ["large"]
