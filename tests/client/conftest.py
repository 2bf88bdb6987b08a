"""The fixtures of the control socket's tests: a mount, and clients of its daemon."""

from tests.control.conftest import connected, mounted, vfs  # noqa: F401 (fixtures for the tests here)
