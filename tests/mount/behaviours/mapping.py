"""Memory maps, shared and private."""

import mmap
import os
from pathlib import Path

from tests.mount.other_process import other_process
from tests.support.files import opened

_PAGE = mmap.PAGESIZE


def shared_maps_write_through(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(bytes(3 * _PAGE))
    with opened(file, os.O_RDWR) as fd, mmap.mmap(fd, 0) as shared:
        shared[10:17] = b"content"
        shared[2 * _PAGE - 2 : 2 * _PAGE + 2] = b"edge"
        shared.flush()
        assert os.pread(fd, 7, 10) == b"content"
    assert file.read_bytes()[2 * _PAGE - 2 : 2 * _PAGE + 2] == b"edge"


def shared_maps_without_msync(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"." * 100)
    with opened(file, os.O_RDWR) as fd, mmap.mmap(fd, 0) as shared:
        shared[0:3] = b"one"
        assert os.pread(fd, 3, 0) == b"one"
    assert file.read_bytes() == b"one" + b"." * 97
    assert file.stat().st_size == 100


def writes_are_visible_in_maps(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"." * 2 * _PAGE)
    with opened(file, os.O_RDWR) as fd, mmap.mmap(fd, 0) as shared:
        assert shared[:4] == b"...."
        os.pwrite(fd, b"four", 0)
        assert shared[:4] == b"four"
        with opened(file, os.O_WRONLY) as other:
            os.pwrite(other, b"last", 2 * _PAGE - 4)
        assert shared[-4:] == b"last"


def writes_to_a_private_map_do_not_change_the_file(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"." * 100)
    with opened(file, os.O_RDWR) as fd, mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE) as private:
        private[0:3] = b"one"
        assert private[0:4] == b"one."
        assert os.pread(fd, 4, 0) == b"...."
    assert file.read_bytes() == b"." * 100


def maps_of_two_processes(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(bytes(_PAGE))
    with (
        opened(file, os.O_RDWR) as fd,
        mmap.mmap(fd, 0) as shared,
        other_process("map_and_write", file, "hello") as other,
    ):
        assert other.read_line() == "written"
        assert shared[:5] == b"hello"
        other.finish()
    assert file.read_bytes()[:5] == b"hello"


def a_map_stays_valid_without_name_and_descriptor(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"." * _PAGE)
    with opened(file, os.O_RDWR) as fd:
        shared = mmap.mmap(fd, 0)
    file.unlink()
    shared[0:3] = b"one"
    shared.flush()
    assert shared[0:4] == b"one."
    shared.close()


def maps_of_holes(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.ftruncate(fd, 64 * _PAGE)
        with mmap.mmap(fd, 0) as shared:
            assert shared[:] == bytes(64 * _PAGE)
            shared[33 * _PAGE] = 7
        assert os.pread(fd, 1, 33 * _PAGE) == b"\7"
    assert (workdir / "file").read_bytes().count(b"\0") == 64 * _PAGE - 1


def a_mapped_file_grows_and_shrinks(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"x" * _PAGE)
    with opened(file, os.O_RDWR) as fd:
        os.ftruncate(fd, 2 * _PAGE)
        with mmap.mmap(fd, 2 * _PAGE) as shared:
            shared[_PAGE] = 1
            os.ftruncate(fd, 100)
            assert shared[:_PAGE] == b"x" * 100 + bytes(_PAGE - 100)
            os.ftruncate(fd, 2 * _PAGE)
            assert shared[:] == b"x" * 100 + bytes(2 * _PAGE - 100)
    assert file.read_bytes() == b"x" * 100 + bytes(2 * _PAGE - 100)
