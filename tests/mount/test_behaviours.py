"""POSIX behaviours by name: each is shown on tmpfs first, which proves the test, and then on vfsd."""

import inspect
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.mount.behaviours import content, kinds, listing, locks, mapping, modes, names, orphans, ours, times
from tests.mount.calls import Behaviour
from tests.support.mounted import mounting
from tests.support.servers import RedisServer

_POSIX = (orphans, listing, names, kinds, modes, times, content, mapping, locks)


def _behaviours(module: ModuleType) -> list[Behaviour]:
    """Return the functions that *module* defines for others to see."""
    return [
        member
        for name, member in vars(module).items()
        if inspect.isfunction(member) and member.__module__ == module.__name__ and not name.startswith("_")
    ]


POSIX = [behaviour for module in _POSIX for behaviour in _behaviours(module)]


def _named(behaviour: Behaviour) -> str:
    return f"{behaviour.__module__.rpartition('.')[2]}.{behaviour.__name__}"


@pytest.fixture(scope="module")
def tmpfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a tmpfs of our own, which knows set-user-ID and devices."""
    path = tmp_path_factory.mktemp("tmpfs")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "suid,dev,exec", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


@pytest.fixture(scope="module")
def vfsd(tmp_path_factory: pytest.TempPathFactory, redis_server: RedisServer) -> Iterator[Path]:
    """Yield a mount that all behaviours share, as they would on an agent's machine."""
    with mounting(tmp_path_factory.mktemp("vfsd")) as factory:
        yield factory(redis_server.url, "-o", "suid,dev", "--allow-other").path


def _show(behaviour: Behaviour, root: Path) -> None:
    place = root / behaviour.__name__
    place.mkdir()
    behaviour(place)


@pytest.mark.parametrize("behaviour", POSIX, ids=_named)
def test_on_tmpfs(behaviour: Behaviour, tmpfs: Path) -> None:
    _show(behaviour, tmpfs)


@pytest.mark.parametrize("behaviour", POSIX, ids=_named)
def test_on_vfsd(behaviour: Behaviour, vfsd: Path) -> None:
    _show(behaviour, vfsd)


@pytest.mark.parametrize("behaviour", _behaviours(ours), ids=_named)
def test_beyond_posix(behaviour: Behaviour, vfsd: Path) -> None:
    _show(behaviour, vfsd)
