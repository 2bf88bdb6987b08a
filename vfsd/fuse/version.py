"""``vfsd --version``: everything a bug report needs to know."""

import ctypes
import os

import pyfuse3

from vfsd import __version__


def versions() -> str:
    """Return the versions of vfsd and what it stands on, a line each."""
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

    It is found through pyfuse3, since its file name differs: ``libfuse3.so.3``, since libfuse 3.17 ``libfuse3.so.4``.
    """
    pkgversion = ctypes.CDLL(pyfuse3.__file__).fuse_pkgversion
    pkgversion.restype = ctypes.c_char_p
    version: bytes = pkgversion()
    return version.decode()
