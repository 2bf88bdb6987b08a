"""``vfsd`` and ``python -m vfsd``: the command line. Ctrl-C while it is still being imported shows no traceback."""

import os
import signal
import sys
from typing import Any


def main() -> Any:
    """Run the command line."""
    try:
        from vfsd.cli import main as run  # noqa: PLC0415 (this import takes most of the time of a short command)

        return run()
    except KeyboardInterrupt:
        os.write(2, b"vfsd: interrupted\n")
        sys.exit(128 + signal.SIGINT)


if __name__ == "__main__":
    main()
