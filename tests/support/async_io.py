"""Asynchronous direct writes (:manpage:`io_submit(2)`), which Python does not offer."""

import ctypes
import mmap
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBERS = {"x86_64": (206, 207, 209, 208), "aarch64": (0, 1, 2, 4)}
"""System call numbers of io_setup, io_destroy, io_submit and io_getevents, by machine."""

_IOCB_CMD_PWRITE = 1


class _ControlBlock(ctypes.Structure):
    """``struct iocb`` of linux/aio_abi.h on a little-endian machine."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_int32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("fd", ctypes.c_uint32),
        ("buffer", ctypes.c_uint64),
        ("length", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("eventfd", ctypes.c_uint32),
    )


class _Event(ctypes.Structure):
    """``struct io_event``."""

    _fields_ = (
        ("data", ctypes.c_uint64),
        ("object", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("result2", ctypes.c_int64),
    )


class AsyncWriter:
    """Writes whole pages to *fd*, which has O_DIRECT: :meth:`submit` begins a write, :meth:`wait` ends it."""

    def __init__(self, fd: int, context: ctypes.c_ulong) -> None:
        self._fd = fd
        self._context = context
        self._buffer = mmap.mmap(-1, mmap.PAGESIZE)
        self._block = _ControlBlock()

    def submit(self, content: bytes, offset: int) -> None:
        """Begin to write a page of *content* at *offset*."""
        self._buffer[:] = content
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self._block = _ControlBlock(
            opcode=_IOCB_CMD_PWRITE, fd=self._fd, buffer=address, length=mmap.PAGESIZE, offset=offset
        )
        pointers = (ctypes.POINTER(_ControlBlock) * 1)(ctypes.pointer(self._block))
        assert _call(2, self._context, ctypes.c_long(1), pointers) == 1

    def wait(self) -> None:
        """Return when the write that was begun is done."""
        event = _Event()
        assert _call(3, self._context, ctypes.c_long(1), ctypes.c_long(1), ctypes.byref(event), None) == 1
        assert event.result == mmap.PAGESIZE


def _call(which: int, *arguments: object) -> int:
    """Return what a system call returns. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(_NUMBERS[platform.machine()][which]), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


@contextmanager
def async_writer(fd: int) -> Iterator[AsyncWriter]:
    """Give a writer to *fd*."""
    context = ctypes.c_ulong(0)
    _call(0, ctypes.c_long(1), ctypes.byref(context))
    try:
        yield AsyncWriter(fd, context)
    finally:
        _call(1, context)
