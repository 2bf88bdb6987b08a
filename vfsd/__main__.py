"""``python -m vfsd``: the command line."""

from vfsd.cli import main

if __name__ == "__main__":
    main()
