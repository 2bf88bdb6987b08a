"""Reading and writing: flags of open, offsets, holes, and calls that copy."""

import os
import tempfile
from errno import EBADF, EEXIST, EINVAL, EISDIR, ENOENT, ENOTDIR
from pathlib import Path

from tests.mount.other_process import other_process
from tests.support.files import opened, refused

_CHUNK = 16_384


def writes_across_blocks(workdir: Path) -> None:
    file = workdir / "file"
    model = bytearray()
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        for number, offset in enumerate((0, 4095, 4096, _CHUNK - 1, _CHUNK, 3 * _CHUNK - 7, 100, 2 * _CHUNK + 5)):
            data = bytes([number + 1]) * (number * 3001 + 1)
            model += bytes(max(0, offset + len(data) - len(model)))
            model[offset : offset + len(data)] = data
            assert os.pwrite(fd, data, offset) == len(data)
            assert os.pread(fd, len(model) + 1, 0) == bytes(model)
    assert file.read_bytes() == bytes(model)
    assert file.stat().st_size == len(model)


def large_writes(workdir: Path) -> None:
    data = os.urandom(1 << 16) * 80
    (workdir / "file").write_bytes(data)
    assert (workdir / "file").read_bytes() == data


def reads_at_and_past_the_end(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"content")
    with opened(workdir / "file", os.O_RDONLY) as fd:
        assert os.pread(fd, 100, 0) == b"content"
        assert os.pread(fd, 100, 7) == os.pread(fd, 100, 1 << 40) == b""
        assert os.pread(fd, 0, 0) == b""
        with refused(EBADF):
            os.write(fd, b"x")


def sparse_files(workdir: Path) -> None:
    file = workdir / "file"
    with opened(file, os.O_RDWR | os.O_CREAT) as fd:
        os.pwrite(fd, b"end", 10 << 20)
        info = os.fstat(fd)
        assert info.st_size == (10 << 20) + 3
        assert info.st_blocks * 512 < 1 << 20
        assert os.pread(fd, 1 << 20, 0) == bytes(1 << 20)
        assert os.pread(fd, 6, (10 << 20) - 3) == b"\0\0\0end"
        os.pwrite(fd, b"x" * 8192, 0)
        assert os.fstat(fd).st_blocks >= 16


def truncate_to_a_terabyte_and_back(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"content")
    os.truncate(file, 1 << 40)
    assert file.stat().st_size == 1 << 40
    assert file.stat().st_blocks * 512 <= _CHUNK
    with opened(file, os.O_RDWR) as fd:
        assert os.pread(fd, 10, 0) == b"content\0\0\0"
        assert os.pread(fd, 4096, 1 << 39) == bytes(4096)
        assert os.pread(fd, 100, (1 << 40) - 5) == bytes(5)
        os.pwrite(fd, b"far", (1 << 40) - 3)
        assert os.pread(fd, 100, (1 << 40) - 5) == b"\0\0far"
    os.truncate(file, 4)
    os.truncate(file, 8)
    assert file.read_bytes() == b"cont\0\0\0\0"


def truncated_content_reads_as_zeros(workdir: Path) -> None:
    file = workdir / "file"
    for size in (1, 4095, 4096, _CHUNK - 1, _CHUNK, _CHUNK + 1):
        file.write_bytes(b"x" * 3 * _CHUNK)
        os.truncate(file, size)
        os.truncate(file, 3 * _CHUNK)
        assert file.read_bytes() == b"x" * size + bytes(3 * _CHUNK - size)
        with opened(file, os.O_WRONLY) as fd:
            os.ftruncate(fd, size)
            os.pwrite(fd, b"y", 2 * _CHUNK)
        assert file.read_bytes() == b"x" * size + bytes(2 * _CHUNK - size) + b"y"


def truncation_errnos(workdir: Path) -> None:
    (workdir / "file").touch()
    with refused(EISDIR):
        os.truncate(workdir, 0)
    with refused(EINVAL):
        os.truncate(workdir / "file", -1)
    with refused(ENOENT):
        os.truncate(workdir / "missing", 0)
    with opened(workdir / "file", os.O_RDONLY) as fd, refused(EINVAL):
        os.ftruncate(fd, 0)


def the_largest_offset(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        for offset in (2**63 - 1, 2**63 - 2):
            with refused(EINVAL):
                os.pwrite(fd, b"xx", offset)
        assert os.fstat(fd).st_size == 0
        os.pwrite(fd, b"x", 2**63 - 2)
        assert os.fstat(fd).st_size == 2**63 - 1
        assert os.pread(fd, 2, 2**63 - 3) == b"\0x"


def o_trunc(workdir: Path) -> None:
    file = workdir / "file"
    file.write_bytes(b"x" * 50_000)
    with opened(file, os.O_WRONLY | os.O_TRUNC) as fd:
        assert os.fstat(fd).st_size == file.stat().st_size == 0
        os.pwrite(fd, b"y", 10)
    assert file.read_bytes() == bytes(10) + b"y"
    with opened(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass
    assert file.read_bytes() == b""
    assert file.stat().st_blocks == 0


def o_excl(workdir: Path) -> None:
    with opened(workdir / "file", os.O_WRONLY | os.O_CREAT | os.O_EXCL):
        pass
    for path in (workdir / "file", workdir):
        with refused(EEXIST), opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
            pass


def o_directory(workdir: Path) -> None:
    (workdir / "file").touch()
    with refused(ENOTDIR), opened(workdir / "file", os.O_RDONLY | os.O_DIRECTORY):
        pass
    with refused(EISDIR), opened(workdir, os.O_RDWR):
        pass


def o_append_by_several_processes(workdir: Path) -> None:
    file = workdir / "log"
    file.touch()
    with (
        other_process("append", file, "a", 150) as a,
        other_process("append", file, "b", 150) as b,
        other_process("append", file, "c", 150) as c,
    ):
        assert [process.read_line() for process in (a, b, c)] == ["ready"] * 3
        for process in (a, b, c):
            process.resume()
        for process in (a, b, c):
            process.finish()
    lines = file.read_text().splitlines()
    for tag in "abc":
        assert [line for line in lines if line.startswith(tag)] == [f"{tag} {number}" for number in range(150)]
    assert len(lines) == 450


def o_append_wins_over_the_offset(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"content")
    with opened(workdir / "file", os.O_RDWR | os.O_APPEND) as fd:
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"+")
        assert os.pread(fd, 100, 0) == b"content+"


def vectors(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        assert os.writev(fd, [b"one", b"", b"two"]) == 6
        assert os.pwritev(fd, [b"T", b"HREE"], 3) == 5
        first, second = bytearray(2), bytearray(10)
        assert os.preadv(fd, [first, second], 1) == 7
        assert bytes(first + second[:5]) == b"neTHREE"
        assert os.pwritev(fd, [b"x" * 5000] * 20, 100) == 100_000
        assert os.pread(fd, 200_000, 100) == b"x" * 100_000


def seeks(workdir: Path) -> None:
    (workdir / "file").write_bytes(b"0123456789")
    with opened(workdir / "file", os.O_RDWR) as fd:
        assert os.lseek(fd, -3, os.SEEK_END) == 7
        assert os.read(fd, 10) == b"789"
        assert os.lseek(fd, -2, os.SEEK_CUR) == 8
        assert os.lseek(fd, 100, os.SEEK_SET) == 100
        os.write(fd, b"x")
        assert os.fstat(fd).st_size == 101
        with refused(EINVAL):
            os.lseek(fd, -1, os.SEEK_SET)
        assert os.lseek(fd, 0, os.SEEK_DATA) == 0
        assert 10 <= os.lseek(fd, 0, os.SEEK_HOLE) <= 101


def posix_fallocate(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"content")
        os.posix_fallocate(fd, 0, 20_000)
        assert os.fstat(fd).st_size == 20_000
        assert os.pread(fd, 30_000, 0) == b"content" + bytes(19_993)


def copy_file_range(workdir: Path) -> None:
    data = os.urandom(100_000)
    (workdir / "source").write_bytes(data)
    with opened(workdir / "source", os.O_RDONLY) as source, opened(workdir / "copy", os.O_RDWR | os.O_CREAT) as copy:
        copied = 0
        while done := os.copy_file_range(source, copy, 100_000):
            copied += done
        assert copied == 100_000
        assert os.copy_file_range(source, copy, 10, 5, 50) == 10
        data = data[:50] + data[5:15] + data[60:]
    assert (workdir / "copy").read_bytes() == data


def sendfile(workdir: Path) -> None:
    data = os.urandom(200_000)
    (workdir / "source").write_bytes(data)
    with opened(workdir / "source", os.O_RDONLY) as source, opened(workdir / "copy", os.O_WRONLY | os.O_CREAT) as copy:
        while os.sendfile(copy, source, None, 1 << 20):
            pass
    assert (workdir / "copy").read_bytes() == data


def copies_from_another_file_system(workdir: Path) -> None:
    data = os.urandom(300_000)
    with tempfile.TemporaryFile() as outside:
        outside.write(data)
        outside.flush()
        with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
            offset = 0
            while done := os.sendfile(fd, outside.fileno(), offset, 1 << 20):
                offset += done
        assert (workdir / "file").read_bytes() == data


def syncs(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as fd:
        os.write(fd, b"content")
        os.fsync(fd)
        os.fdatasync(fd)
        os.sync()
    with opened(workdir, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)
        os.fdatasync(fd)
    with opened(workdir / "file", os.O_WRONLY | os.O_DSYNC | os.O_APPEND) as fd:
        os.write(fd, b"+")
    assert (workdir / "file").read_bytes() == b"content+"


def two_descriptors_see_each_other(workdir: Path) -> None:
    with opened(workdir / "file", os.O_RDWR | os.O_CREAT) as first, opened(workdir / "file", os.O_RDWR) as second:
        for number in range(50):
            os.pwrite(first, b"%4d" % number, number * 4)
            assert os.pread(second, 4, number * 4) == b"%4d" % number
            assert os.fstat(second).st_size == (number + 1) * 4
        os.ftruncate(second, 10)
        assert os.pread(first, 100, 0) == b"   0   1  "
