"""What libfuse is given for a mount, and what it says: its mount options, its version, its messages.

libfuse is a C library that pyfuse3 has loaded. It prints why it refuses something, and does not return it. Options can
be tried without a mount, so that a mistyped one is found before anything is created.
"""

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pyfuse3

from vfsd.config import MountConfig
from vfsd.errors import FuseUnavailable, MountpointError, UsageError, VfsdError, clause
from vfsd.fuse.device import why_not_mounted


class _Arguments(ctypes.Structure):
    """``struct fuse_args`` of libfuse: a command line."""

    _fields_: ClassVar = [
        ("argc", ctypes.c_int),
        ("argv", ctypes.POINTER(ctypes.c_char_p)),
        ("allocated", ctypes.c_int),
    ]


def library() -> ctypes.CDLL:
    """Return the shared library that pyfuse3 has loaded.

    Loading pyfuse3 again finds the library that it is linked to. The file name of that library depends on its version:
    ``libfuse3.so.3``, and ``libfuse3.so.4`` since libfuse 3.17.
    """
    return ctypes.CDLL(pyfuse3.__file__)


def library_version() -> str:
    """Return the version of libfuse (``fuse_pkgversion``, libfuse 3.0 or later)."""
    pkgversion = library().fuse_pkgversion
    pkgversion.restype = ctypes.c_char_p
    version: bytes = pkgversion()
    return version.decode()


def mount_options(config: MountConfig) -> set[str]:
    """Return the mount options for libfuse (:manpage:`mount.fuse3(8)`). No two of them contradict each other."""
    names = {"default_permissions", f"fsname=vfsd:{config.scope}", "subtype=vfsd", *config.options}
    return names | {"ro"} if config.read_only else names


def mount_error(mountpoint: str, why: str) -> VfsdError:
    """Return the error for libfuse's message *why*: this process may not mount at all, or not at *mountpoint*."""
    if os.strerror(errno.EPERM) in why:
        return FuseUnavailable(f"cannot mount at {mountpoint}: {why_not_mounted(clause(why))}")
    return MountpointError(f"cannot mount at {mountpoint}: {clause(why)}")


def check_mount_options(config: MountConfig) -> None:
    """Let libfuse read the mount options of *config*, without a mount. Raises UsageError if it refuses them.

    A session is made and destroyed (``fuse_session_new``). A libfuse that exports no such function refuses the options
    later, when it mounts.
    """
    new, destroy = (getattr(library(), f"fuse_session_{name}", None) for name in ("new", "destroy"))
    if new is None or destroy is None:
        return
    new.restype, destroy.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
    words = (b"vfsd", b"-o", ",".join(sorted(mount_options(config))).encode(errors="surrogateescape"))
    arguments = _Arguments(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None), 0)
    no_handlers = ctypes.create_string_buffer(ctypes.sizeof(ctypes.c_void_p))
    with stderr_of_libfuse() as printed:
        session = new(ctypes.byref(arguments), no_handlers, ctypes.c_size_t(len(no_handlers)), None)
        if session is None:
            why = clause(said(printed)) or "libfuse gives no reason"
            raise UsageError(f"-o {','.join(config.options)}: {why}; correct it, or leave it out")
    destroy(session)


@contextmanager
def stderr_of_libfuse() -> Iterator[str]:
    """Redirect file descriptor 2 to a temporary file, and yield the path of that file.

    libfuse prints why it cannot mount, and does not return it.
    """
    stderr = os.dup(2)
    with tempfile.NamedTemporaryFile(prefix="vfsd-") as output:
        os.dup2(output.fileno(), 2)
        try:
            yield output.name
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def said(printed: str) -> str:
    """Return what libfuse has printed into the file *printed*, as one line."""
    return "; ".join(line for line in Path(printed).read_text(errors="replace").split("\n") if line.strip())
