"""``vfsd --version``: everything a bug report needs to know."""

import os

import pyfuse3

from vfsd import __version__
from vfsd.fuse.libfuse import library_version


def versions() -> str:
    """Return the versions of vfsd, of its FUSE libraries and of the kernel, one a line."""
    return "\n".join(
        (
            f"vfsd {__version__}",
            f"pyfuse3 {pyfuse3.__version__}",
            f"libfuse {library_version()}",
            f"kernel {os.uname().release}",
        )
    )
