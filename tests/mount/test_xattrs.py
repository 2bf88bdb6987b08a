"""Extended attributes on a mount with ``--xattr``."""

import os
from collections.abc import Iterator
from errno import E2BIG, EEXIST, ENODATA, ENOSPC, ENOTSUP, EPERM, ERANGE
from pathlib import Path

import pytest

from tests.support.files import opened, permissions, refused, unprivileged, wait_for_clock_tick
from tests.support.mounted import Mounted, mounting
from tests.support.servers import RedisServer

ACL = b"\x02\0\0\0\x01\0\x06\0\xff\xff\xff\xff\x04\0\x04\0\xff\xff\xff\xff\x20\0\x04\0\xff\xff\xff\xff"
"""A POSIX ACL in the format of the kernel: u::rw,g::r,o::r."""


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Mounted]:
    with mounting(tmp_path_factory.mktemp("xattr")) as factory:
        yield factory(redis_server.url, "--xattr", "--allow-other", "-o", "suid")


@pytest.fixture
def file(mounted: Mounted, request: pytest.FixtureRequest) -> Path:
    """Return a new file named after the test."""
    path: Path = mounted.path / request.node.name
    path.touch()
    return path


def test_set_get_list_and_remove(file: Path) -> None:
    assert os.listxattr(file) == []
    values = {"user.name": b"value", "user.empty": b"", "trusted.name": b"\0\xff", "user.\N{SNOWMAN}": b"odd"}
    for name, value in values.items():
        os.setxattr(file, name, value)
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == values
    os.setxattr(file, "user.name", b"another value")
    assert os.getxattr(file, "user.name") == b"another value"
    os.removexattr(file, "user.name")
    assert "user.name" not in os.listxattr(file)
    for call in (os.getxattr, os.removexattr):
        with refused(ENODATA):
            call(file, "user.name")


def test_create_and_replace(file: Path) -> None:
    with refused(ENODATA):
        os.setxattr(file, "user.name", b"value", os.XATTR_REPLACE)
    os.setxattr(file, "user.name", b"value", os.XATTR_CREATE)
    with refused(EEXIST):
        os.setxattr(file, "user.name", b"other", os.XATTR_CREATE)
    os.setxattr(file, "user.name", b"other", os.XATTR_REPLACE)
    assert os.getxattr(file, "user.name") == b"other"


def test_xattrs_belong_to_the_inode(file: Path) -> None:
    os.setxattr(file, "user.name", b"value")
    link = file.with_name("link")
    os.link(file, link)
    file.rename(file.with_name("renamed"))
    assert os.getxattr(link, "user.name") == b"value"
    with opened(link, os.O_RDWR) as fd:
        link.unlink()
        file.with_name("renamed").unlink()
        os.setxattr(fd, "user.other", b"without a name")
        assert os.getxattr(fd, "user.other") == b"without a name"


def test_directories_and_symlinks_have_xattrs(file: Path) -> None:
    directory, link = file.with_name("directory"), file.with_name("symlink")
    directory.mkdir()
    link.symlink_to(directory)
    os.setxattr(directory, "user.name", b"value")
    os.setxattr(link, "trusted.name", b"its own", follow_symlinks=False)
    assert os.getxattr(link, "user.name") == b"value"
    assert os.listxattr(link, follow_symlinks=False) == ["trusted.name"]
    with refused(EPERM):
        os.setxattr(link, "user.name", b"value", follow_symlinks=False)


def test_a_change_of_an_xattr_changes_the_ctime_only(file: Path) -> None:
    before = file.stat()
    began = wait_for_clock_tick()
    os.setxattr(file, "user.name", b"value")
    assert file.stat().st_ctime_ns > began
    began = wait_for_clock_tick()
    os.removexattr(file, "user.name")
    assert file.stat().st_ctime_ns > began
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_access_control_lists_are_refused(file: Path) -> None:
    with refused(ENOTSUP):
        os.setxattr(file, "system.posix_acl_access", ACL)
    with refused(ENOTSUP):
        os.setxattr(file.parent, "system.posix_acl_default", ACL)
    assert permissions(file) == 0o644
    assert os.listxattr(file) == []


def test_limits_are_those_of_linux(file: Path) -> None:
    longest = "user." + "n" * 250
    for size in (65_535, 65_536):
        os.setxattr(file, longest, bytes(size))
        assert os.getxattr(file, longest) == bytes(size)
    with refused(ERANGE):
        os.setxattr(file, longest + "n", b"value")
    with refused(E2BIG):
        os.setxattr(file, "user.too large", b"x" * 65_537)
    assert os.listxattr(file) == [longest]


def test_the_names_may_fill_a_listing(file: Path, mounted: Mounted) -> None:
    names = [f"user.{number:0250d}" for number in range(256)]
    for name in names:
        os.setxattr(file, name, b"")
    with refused(ENOSPC):
        os.setxattr(file, "user.more", b"")
    os.setxattr(file, names[0], bytes(65_536))
    mounted.remount()
    assert sorted(os.listxattr(file)) == names
    assert os.getxattr(file, names[0]) == bytes(65_536)
    with refused(ENOSPC):
        os.setxattr(file, names[1], b"x" * 1_000)


def test_only_root_sees_trusted_xattrs(file: Path) -> None:
    file.chmod(0o666)
    os.setxattr(file, "trusted.name", b"value")
    os.setxattr(file, "user.name", b"value")
    with opened(file, os.O_RDWR) as fd, unprivileged():
        assert os.listxattr(fd) == ["user.name"]
        with refused(EPERM):
            os.setxattr(fd, "trusted.name", b"other")


def test_a_write_removes_file_capabilities(file: Path) -> None:
    capability = b"\x01\0\0\x02\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    os.setxattr(file, "security.capability", capability)
    assert os.getxattr(file, "security.capability") == capability
    with opened(file, os.O_WRONLY) as fd:
        os.write(fd, b"content")
    with refused(ENODATA):
        os.getxattr(file, "security.capability")


def test_xattrs_are_stored(mounted: Mounted, file: Path) -> None:
    values = {"user.one": b"1" * 1000, "user.two": b"", "trusted.three": b"\0\1"}
    for name, value in values.items():
        os.setxattr(file, name, value)
    mounted.remount()
    assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == values
