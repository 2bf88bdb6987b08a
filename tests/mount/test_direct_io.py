"""After a write with O_DIRECT nobody sees old pages: not who opens the file then, not who has it open or mapped."""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event as ProcessEvent
from pathlib import Path

import pytest

from tests.support.async_io import async_writer
from tests.support.mounted import PATIENCE, Mounted, MountFactory
from tests.support.servers import RedisServer
from tests.support.syscalls import closing_fd

PAGES, ROUNDS = 8, 40


def _read_endlessly(path: Path, stop: ProcessEvent) -> None:
    while not stop.is_set():
        path.read_bytes()


@contextmanager
def _being_read(path: Path) -> Iterator[None]:
    """Let another process read the file over and over meanwhile, by way of the page cache."""
    context = get_context("fork")
    stop = context.Event()
    reader = context.Process(target=_read_endlessly, args=(path, stop))
    reader.start()
    try:
        yield
    finally:
        stop.set()
        reader.join(PATIENCE)


def _mapped(path: Path) -> tuple[Callable[[int], bytes], Callable[[], None]]:
    file = path.open("rb")
    mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    file.close()
    return lambda page: mapping[page * mmap.PAGESIZE : page * mmap.PAGESIZE + 1], mapping.close


def _opened_before(path: Path) -> tuple[Callable[[int], bytes], Callable[[], None]]:
    fd = os.open(path, os.O_RDONLY)
    return lambda page: os.pread(fd, 1, page * mmap.PAGESIZE), lambda: os.close(fd)


def _opened_after(path: Path) -> tuple[Callable[[int], bytes], Callable[[], None]]:
    return lambda page: path.read_bytes()[page * mmap.PAGESIZE :][:1], lambda: None


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer) -> Mounted:
    return mount(redis_server.url)


@pytest.mark.parametrize("view", [_opened_after, _opened_before, _mapped])
def test_a_reader_never_sees_old_pages_after_an_asynchronous_direct_write(
    mounted: Mounted, view: Callable[[Path], tuple[Callable[[int], bytes], Callable[[], None]]]
) -> None:
    path = mounted.path / "file"
    path.write_bytes(bytes(PAGES * mmap.PAGESIZE))
    read_page, close = view(path)
    with (
        closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)) as fd,
        async_writer(fd) as writer,
        _being_read(path),
    ):
        for number in range(1, ROUNDS):
            for page in range(PAGES):
                writer.submit(bytes([number]) * mmap.PAGESIZE, page * mmap.PAGESIZE)
                writer.wait()
                assert read_page(page) == bytes([number]), f"round {number}, page {page}"
    close()


def test_the_first_open_after_the_last_direct_handle_sees_no_old_pages(mounted: Mounted) -> None:
    path = mounted.path / "file"
    path.write_bytes(bytes(PAGES * mmap.PAGESIZE))
    with _being_read(path):
        for number in range(1, ROUNDS):
            with closing_fd(os.open(path, os.O_RDWR | os.O_DIRECT)) as fd, async_writer(fd) as writer:
                writer.submit(bytes([number]) * mmap.PAGESIZE, 0)
                writer.wait()
            assert path.read_bytes()[:1] == bytes([number])
