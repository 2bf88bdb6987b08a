"""Every operation of the control socket is documented, served by a daemon, and has a method in the Python client."""

import importlib
import inspect
import json
import pkgutil
import re
import socket
from pathlib import Path

import pytest

from tests.support.mounted import Mounted
from vfsd import Vfs
from vfsd.control import handlers
from vfsd.control.arguments import Arguments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "control.md"

NO_OPERATION = {"close"}
"""Methods of the client that send no request."""

LSTAT = {"lstat"}
"""An operation that is an argument of a method: ``stat(follow_symlinks=False)``."""


def _documented() -> set[str]:
    """Return the operations in the table of docs/control.md."""
    table = PAGE.read_text().partition("| op |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def _handled() -> set[str]:
    """Return the operations that the modules of handlers have. What a handler calls is not needed for that: None."""
    names: set[str] = set()
    for info in pkgutil.iter_modules(handlers.__path__):
        module = importlib.import_module(f"{handlers.__name__}.{info.name}")
        (build,) = (function for name, function in inspect.getmembers(module) if name.endswith("_operations"))
        names |= build(*[None] * len(inspect.signature(build).parameters)).keys()
    return names


def test_every_operation_is_documented() -> None:
    assert _handled() == _documented()


@pytest.mark.parametrize("module", [info.name for info in pkgutil.iter_modules(handlers.__path__)])
def test_every_function_for_an_operation_is_in_a_table(module: str) -> None:
    functions = inspect.getmembers(
        importlib.import_module(f"{handlers.__name__}.{module}"), inspect.iscoroutinefunction
    )
    operations = {
        name.removeprefix("_")
        for name, function in functions
        if Arguments in [parameter.annotation for parameter in inspect.signature(function).parameters.values()]
    }
    assert operations <= _handled()


def test_the_python_client_has_a_method_for_every_operation() -> None:
    methods = {name for name, _ in inspect.getmembers(Vfs, inspect.isfunction) if not name.startswith("_")}
    assert methods - NO_OPERATION == _documented() - LSTAT


def test_a_daemon_serves_every_operation(mounted: Mounted) -> None:
    (path,) = (mounted.path.parent / "run").glob("*.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(30)
        client.connect(str(path))
        lines = client.makefile("rb")
        for op in sorted(_documented(), key="destroy".__eq__):  # destroy is the last: the daemon ends after it
            client.sendall(json.dumps({"op": op}).encode() + b"\n")
            reply = json.loads(lines.readline())
            assert reply["ok"] or reply["error"]["code"] == "EINVAL", reply
    assert mounted.wait() == 0
