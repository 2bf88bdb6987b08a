"""The tables of errors are complete, and only the modules that should read them do."""

import inspect
from pathlib import Path

import pytest

from vfsd import errors
from vfsd.store.redis.errors import refusal

ROOT = Path(__file__).parents[1]

UNSPECIFIC = {errors.VfsdError, errors.StoreError, errors.FsError, errors.StaleFile, errors.DaemonFailed}
"""Classes without an exit status of their own: base classes, and errors that no command ends with."""


def _readers(function: str) -> set[str]:
    """Return the modules that call *function*, outside of the module that defines it."""
    modules = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "vfsd").rglob("*.py")}
    return {name for name, text in modules.items() if f"{function}(" in text} - {"vfsd/errors.py"}


def test_every_error_has_an_exit_status() -> None:
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.VfsdError)}
    specific = kinds - UNSPECIFIC
    assert {kind for kind in specific if not set(kind.__mro__) & (errors.EXIT_STATUS.keys() - UNSPECIFIC)} == set()


def test_only_the_ends_translate_errors() -> None:
    assert _readers("errno_of") == {"vfsd/fuse/guard.py", "vfsd/control/server.py"}
    assert _readers("exit_status_of") == {"vfsd/cli/__init__.py", "vfsd/daemon/process.py"}


FOREIGN: dict[str, tuple[BaseException, str]] = {
    "a sentence": (RuntimeError("Connection closed by server."), "Connection closed by server"),
    "the system": (PermissionError(13, "Permission denied", "/x"), "[Errno 13] Permission denied: '/x'"),
    "several lines": (RuntimeError("first line,\n  second line.\n"), "first line, second line"),
    "nothing": (TimeoutError(), "TimeoutError"),
}


@pytest.mark.parametrize(("error", "expected"), FOREIGN.values(), ids=FOREIGN)
def test_the_text_of_a_foreign_exception_is_a_part_of_a_line(error: BaseException, expected: str) -> None:
    assert errors.clause(error) == expected


def test_a_reply_of_redis_is_a_part_of_a_line() -> None:
    line = str(refusal("redis://host/0", "NOAUTH Authentication required."))
    assert line == (
        "the store redis://host/0 refuses: NOAUTH Authentication required; put user and password into the store URL"
    )
