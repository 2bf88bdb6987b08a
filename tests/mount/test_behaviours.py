"""One test for each POSIX behaviour: it runs on tmpfs, which proves that the test is right, and on a vfsd mount.

A behaviour is a public function of a module in ``behaviours``. It gets an empty directory, and fails if the file system
behaves differently.
"""

import importlib
import inspect
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import pytest

from tests.mount.behaviours import beyond_posix
from tests.support.mounted import mounting
from tests.support.servers import RedisServer

Behaviour: TypeAlias = Callable[[Path], None]


def _behaviours(module: ModuleType) -> list[Behaviour]:
    """Return the public functions that *module* defines."""
    return [
        member
        for name, member in vars(module).items()
        if inspect.isfunction(member) and member.__module__ == module.__name__ and not name.startswith("_")
    ]


def _posix_behaviours() -> list[Behaviour]:
    """Return the behaviours of all modules except :mod:`beyond_posix`, where tmpfs differs from vfsd."""
    names = sorted(file.stem for file in (Path(__file__).parent / "behaviours").glob("*.py"))
    modules = [importlib.import_module(f"tests.mount.behaviours.{name}") for name in names]
    return [behaviour for module in modules if module is not beyond_posix for behaviour in _behaviours(module)]


POSIX = _posix_behaviours()


def _name_of(behaviour: Behaviour) -> str:
    return f"{behaviour.__module__.rpartition('.')[2]}.{behaviour.__name__}"


@pytest.fixture(scope="module")
def tmpfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a new tmpfs that supports set-user-ID and devices."""
    path = tmp_path_factory.mktemp("tmpfs")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "suid,dev,exec", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.fixture(scope="module")
def vfsd(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Path]:
    """Yield one mount for all behaviours, as on an agent's machine."""
    with mounting(tmp_path_factory.mktemp("vfsd")) as factory:
        yield factory(redis_server.url, "-o", "suid,dev", "--allow-other").path


def _run(behaviour: Behaviour, root: Path) -> None:
    """Run *behaviour* in a new directory below *root*."""
    workdir = root / behaviour.__name__
    workdir.mkdir()
    behaviour(workdir)


@pytest.mark.parametrize("behaviour", POSIX, ids=_name_of)
def test_on_tmpfs(behaviour: Behaviour, tmpfs: Path) -> None:
    _run(behaviour, tmpfs)


@pytest.mark.parametrize("behaviour", POSIX, ids=_name_of)
def test_on_vfsd(behaviour: Behaviour, vfsd: Path) -> None:
    _run(behaviour, vfsd)


@pytest.mark.parametrize("behaviour", _behaviours(beyond_posix), ids=_name_of)
def test_beyond_posix(behaviour: Behaviour, vfsd: Path) -> None:
    _run(behaviour, vfsd)
