"""``vfsd --version``: everything a bug report needs to know."""

import ctypes
import os

import pyfuse3

from vfsd import __version__


def versions() -> str:
    """Return the versions of vfsd, of its FUSE libraries and of the kernel, one a line."""
    return "\n".join(
        (
            f"vfsd {__version__}",
            f"pyfuse3 {pyfuse3.__version__}",
            f"libfuse {_libfuse()}",
            f"kernel {os.uname().release}",
        )
    )


def _libfuse() -> str:
    """Return the version of the shared library that pyfuse3 has loaded (``fuse_pkgversion``, libfuse 3.0 or later).

    Loading pyfuse3 again finds the library that it is linked to. The file name of that library depends on its version:
    ``libfuse3.so.3``, and ``libfuse3.so.4`` since libfuse 3.17.
    """
    pkgversion = ctypes.CDLL(pyfuse3.__file__).fuse_pkgversion
    pkgversion.restype = ctypes.c_char_p
    version: bytes = pkgversion()
    return version.decode()
