"""The package ``vfsd`` exports every public type of the client, documented, and is light to import."""

import inspect
import subprocess
import sys
import typing
from collections.abc import Iterator

import pytest

import vfsd
from tests.support.mounted import PATIENCE
from vfsd.client import results, vfs

HEAVY = ("trio", "redis", "hiredis", "pyfuse3", "sqlite3", "click", "yaml")
"""Libraries that a client does not need."""


def _public_types() -> Iterator[type]:
    """Yield the types that the client's modules define, and those in the signatures of its methods."""
    for module in (results, vfs):
        yield from (
            kind
            for name, kind in inspect.getmembers(module, inspect.isclass)
            if kind.__module__ == module.__name__ and not name.startswith("_")
        )
    for method in (vfs.connect, *_methods()):
        yield from _vfsd_types(typing.get_type_hints(method).values())


def _methods() -> list[typing.Callable[..., object]]:
    return [method for name, method in inspect.getmembers(vfs.Vfs, inspect.isfunction) if not name.startswith("_")]


def _vfsd_types(hints: typing.Iterable[object]) -> Iterator[type]:
    for hint in hints:
        if isinstance(hint, type) and hint.__module__.startswith("vfsd"):
            yield hint
        yield from _vfsd_types(typing.get_args(hint))


def test_every_public_type_is_exported() -> None:
    exported = {getattr(vfsd, name) for name in vfsd.__all__}
    assert set(_public_types()) <= exported
    assert {vfs.connect, vfs.FilePath, vfs.Content} <= exported


@pytest.mark.parametrize("name", vfsd.__all__)
def test_every_exported_class_and_function_is_documented(name: str) -> None:
    exported = getattr(vfsd, name)
    if inspect.isclass(exported) or inspect.isfunction(exported):
        assert exported.__doc__ is not None
        assert not exported.__doc__.startswith(f"{name}("), "this is what NamedTuple writes"


@pytest.mark.parametrize("method", _methods(), ids=lambda method: method.__name__)
def test_every_method_is_documented(method: typing.Callable[..., object]) -> None:
    assert method.__doc__


def test_importing_it_loads_no_loop_no_store_and_no_fuse() -> None:
    code = f"import sys; from vfsd import *; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert result.stdout == "[]\n"
