"""Operations on names: create, move, remove, list, stat. Names of any bytes."""

import errno
import os
import stat

import pytest

from tests.support.mounted import Mounted
from tests.support.servers import RedisServer
from tests.support.store_comparison import assert_store_matches, commit_count
from vfsd import Vfs

UNUSUAL = [b"with space", b"\xff\xfe not utf-8", "grüße".encode(), b"a\nline", b'"quoted"\\', b"\x7f\x01", b"n" * 255]


@pytest.mark.parametrize("name", UNUSUAL)
def test_names_of_unusual_bytes(mounted: Mounted, vfs: Vfs, name: bytes) -> None:
    top = os.fsencode(mounted.path)
    vfs.write_file(name, name)
    assert os.listdir(top) == [name]
    with open(os.path.join(top, name), "rb") as file:
        assert file.read() == name
    assert [os.fsencode(path) for path in vfs.list_all_paths()] == _names(vfs) == [name]
    assert os.fsencode(vfs.realpath(name)) == os.path.join(top, name)
    vfs.move_file(name, b"moved " + name[:200])
    assert os.listdir(top) == [b"moved " + name[:200]]
    vfs.delete_file(b"moved " + name[:200])
    assert os.listdir(top) == []


def _names(vfs: Vfs) -> list[bytes]:
    return [os.fsencode(name) for name in vfs.readdir()]


def test_a_name_that_is_too_long(vfs: Vfs) -> None:
    with pytest.raises(OSError, match="name too long") as caught:
        vfs.write_file("n" * 256, b"")
    assert caught.value.errno == errno.ENAMETOOLONG
    assert not vfs.exists("n" * 256)
    assert vfs.readdir("./" * 2047) == []
    with pytest.raises(OSError, match="name too long"):
        vfs.readdir("./" * 2048)


def test_mkdir(mounted: Mounted, vfs: Vfs) -> None:
    top = mounted.path
    assert vfs.mkdir("one", mode=0o700)
    assert stat.S_IMODE((top / "one").stat().st_mode) == 0o700
    assert vfs.mkdir("a/b/c", parents=True)
    assert (top / "a/b/c").is_dir()
    assert vfs.mkdir("a/b/c", parents=True) is False
    with pytest.raises(FileExistsError):
        vfs.mkdir("a/b/c")
    with pytest.raises(FileNotFoundError):
        vfs.mkdir("x/y")
    (top / "file").touch()
    (top / "link").symlink_to("nowhere")
    for existing in ("file", "link"):
        with pytest.raises(FileExistsError):
            vfs.mkdir(existing)
    with pytest.raises(FileExistsError):
        vfs.mkdir("file", parents=True)
    assert_store_matches(mounted)


def test_rmdir(mounted: Mounted, vfs: Vfs, redis_server: RedisServer) -> None:
    top = mounted.path
    (top / "a/b/c").mkdir(parents=True)
    (top / "a/b/file").write_bytes(b"content")
    (top / "a/link").symlink_to("b")
    os.link(top / "a/b/file", top / "kept")
    with pytest.raises(OSError, match="not empty") as caught:
        vfs.rmdir("a")
    assert caught.value.errno == errno.ENOTEMPTY
    vfs.rmdir("a/b/c")
    count = commit_count(redis_server, mounted.scope)
    vfs.rmdir("a", recursive=True)
    assert commit_count(redis_server, mounted.scope) == count + 1
    assert os.listdir(top) == ["kept"]
    assert ((top / "kept").stat().st_nlink, (top / "kept").read_bytes(), top.stat().st_nlink) == (1, b"content", 2)
    with pytest.raises(FileNotFoundError):
        vfs.rmdir("a", recursive=True)
    vfs.rmdir("a", missing_ok=True)
    with pytest.raises(NotADirectoryError):
        vfs.rmdir("kept", recursive=True)
    with pytest.raises(OSError, match="busy"):
        vfs.rmdir("/", recursive=True)
    assert_store_matches(mounted)


def test_a_large_directory_is_removed_in_two_commits(mounted: Mounted, vfs: Vfs, redis_server: RedisServer) -> None:
    for number in range(1500):
        vfs.write_file(f"deep/{number % 7}/{number}", b"x", parents=True)
    count = commit_count(redis_server, mounted.scope)
    vfs.rmdir("deep", recursive=True)
    assert commit_count(redis_server, mounted.scope) == count + 2
    assert os.listdir(mounted.path) == []
    assert_store_matches(mounted)


def test_delete_file(mounted: Mounted, vfs: Vfs) -> None:
    top = mounted.path
    (top / "file").touch()
    (top / "link").symlink_to("file")
    (top / "directory").mkdir()
    assert vfs.delete_file("link")
    assert os.listdir(top) == ["file", "directory"]
    with pytest.raises(IsADirectoryError):
        vfs.delete_file("directory")
    assert vfs.delete_file("file")
    assert vfs.delete_file("file", missing_ok=True) is False
    with pytest.raises(FileNotFoundError) as caught:
        vfs.delete_file("file")
    assert str(caught.value) == "[Errno 2] No such file or directory: 'file'"
    assert_store_matches(mounted)


def test_move_file(mounted: Mounted, vfs: Vfs) -> None:
    top = mounted.path
    (top / "file").write_bytes(b"moved")
    (top / "existing").write_bytes(b"replaced")
    with pytest.raises(FileExistsError):
        vfs.move_file("file", "existing", overwrite=False)
    vfs.move_file("file", "existing")
    assert (top / "existing").read_bytes() == b"moved"
    with pytest.raises(FileNotFoundError) as caught:
        vfs.move_file("existing", "a/b/target")
    assert (caught.value.filename, caught.value.filename2) == ("existing", "a/b/target")
    vfs.move_file("existing", "a/b/target", parents=True)
    vfs.move_file("a/b", "b")
    assert vfs.readdir(recursive=True) == ["a", "b", "b/target"]
    assert sorted(os.listdir(top)) == ["a", "b"]
    with pytest.raises(OSError, match="Invalid argument"):
        vfs.move_file("b", "b/below")
    with pytest.raises(OSError, match="busy"):
        vfs.move_file("/", "b/root")
    assert_store_matches(mounted)


def test_readdir_stat_and_exists(mounted: Mounted, vfs: Vfs) -> None:
    top = mounted.path
    (top / "sub/deeper").mkdir(parents=True)
    (top / "sub/deeper/x.md").write_bytes(b"12345")
    (top / "a.md").symlink_to("sub/deeper/x.md")
    os.mkfifo(top / "fifo")
    assert vfs.list_all_paths() == ["a.md", "fifo", "sub/deeper/x.md"]
    assert vfs.readdir() == ["a.md", "fifo", "sub"]
    assert vfs.readdir("sub", recursive=True) == ["deeper", "deeper/x.md"]
    for path in ("a.md", "fifo", "sub", "sub/deeper/x.md", "."):
        for follow in (True, False):
            by_client, in_mount = vfs.stat(path, follow_symlinks=follow), os.stat(top / path, follow_symlinks=follow)
            assert (by_client.size, by_client.mode, by_client.nlink, by_client.uid, by_client.gid, by_client.ino) == (
                (
                    in_mount.st_size,
                    in_mount.st_mode,
                    in_mount.st_nlink,
                    in_mount.st_uid,
                    in_mount.st_gid,
                    in_mount.st_ino,
                )
            )
            assert (by_client.mtime_ns, by_client.ctime_ns, by_client.atime_ns) == (
                in_mount.st_mtime_ns,
                in_mount.st_ctime_ns,
                in_mount.st_atime_ns,
            )
    kinds = {path: vfs.stat(path, follow_symlinks=False).type for path in ("a.md", "fifo", "sub", "sub/deeper/x.md")}
    assert kinds == {"a.md": "symlink", "fifo": "other", "sub": "directory", "sub/deeper/x.md": "file"}
    assert vfs.exists("sub/")
    assert not vfs.exists("missing")
    assert not vfs.exists("sub/deeper/x.md/below")
    with pytest.raises(NotADirectoryError):
        vfs.readdir("a.md")
    with pytest.raises(FileNotFoundError):
        vfs.stat("missing")
