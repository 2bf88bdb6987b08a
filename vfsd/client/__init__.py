"""The Python client of a running daemon, for programs and for the command line. It loads neither trio nor pyfuse3."""
