"""Shells complete command lines of vfsd. Real shells on a terminal, with real stores and mounts."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import success
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer
from tests.support.terminal import Terminal

SHELLS = ["bash", "zsh"]


def _environment(**more: str) -> dict[str, str]:
    """Return an environment in which ``vfsd`` is on the PATH, as after an installation."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VFSD_")}
    return {**kept, "PATH": path, "LC_ALL": "C.UTF-8", **more}


@contextmanager
def _terminal(shell: str, cwd: Path, **more: str) -> Iterator[Terminal]:
    """Yield a terminal of *shell* that has run the command of the documentation."""
    with Terminal(shell, _environment(**more), cwd) as terminal:
        terminal.run(f"source <(vfsd completion {shell})")
        yield terminal


def _fish(line: str, cwd: Path, **more: str) -> list[str]:
    """Return what fish offers for *line*, without the explanations."""
    command = ["fish", "--no-config", "-c", "vfsd completion fish | source; complete -C $argv[1]", line]
    result = subprocess.run(command, env=_environment(**more), cwd=cwd, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return [offer.partition("\t")[0] for offer in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with a file, a directory, and a store that has two scopes."""
    directory = tmp_path_factory.mktemp("places")
    (directory / "logfile").touch()
    (directory / "subdirectory").mkdir()
    environment = _environment(VFSD_RUNTIME_DIR=str(directory / "run"))
    for scope in ("run-42", "team:a@b"):
        arguments = [str(directory / "mnt"), "--scope", scope, "--store", f"sqlite:{directory}/runs.db"]
        success(run_vfsd("mount", *arguments, "--log-file", str(directory / "vfsd.log"), env=environment))
        success(run_vfsd("umount", str(directory / "mnt"), env=environment))
    return directory


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_options_choices_and_paths(shell: str, places: Path) -> None:
    with _terminal(shell, places) as terminal:
        assert terminal.completed("vfsd umo") == "vfsd umount "
        assert terminal.completed("vfsd skill rem") == "vfsd skill remove "
        assert terminal.completed("vfsd completion f") == "vfsd completion fish "
        assert terminal.completed("vfsd mount --max-m") == "vfsd mount --max-memory "
        assert terminal.completed("vfsd mount --seed-policy k") == "vfsd mount --seed-policy keep "
        assert terminal.completed("vfsd mount größe --seed-policy k") == "vfsd mount größe --seed-policy keep "
        assert terminal.completed("vfsd mount --log-file logf") == "vfsd mount --log-file logfile "
        assert terminal.completed("vfsd mount subd") == "vfsd mount subdirectory/"


@pytest.mark.parametrize("shell", SHELLS)
def test_scopes_of_the_store_that_the_line_names(shell: str, places: Path) -> None:
    """Bash breaks the words of such a line at each ``:``, ``@`` and ``=``."""
    with _terminal(shell, places) as terminal:
        for line in ("vfsd mount m --store sqlite:runs.db --scope ", "vfsd destroy --store sqlite:runs.db "):
            assert terminal.completed(f"{line}r") == f"{line}run-42 "
            assert terminal.completed(f"{line}t") == f"{line}team:a@b "
            assert terminal.completed(f"{line}team:a") == f"{line}team:a@b "
        assert terminal.completed("vfsd mount --store=sqlite:runs.db --scope=team:").endswith("--scope=team:a@b ")


@pytest.mark.parametrize("shell", SHELLS)
def test_scopes_of_the_store_of_the_environment(
    shell: str, mount: MountFactory, redis_server: RedisServer, tmp_path: Path
) -> None:
    mounted = mount(redis_server.url)
    with _terminal(shell, tmp_path, VFSD_STORE=redis_server.url) as terminal:
        assert terminal.completed(f"vfsd destroy {mounted.scope[:-1]}") == f"vfsd destroy {mounted.scope} "


@pytest.mark.parametrize("shell", SHELLS)
def test_mountpoints(shell: str, mount: MountFactory, redis_server: RedisServer, tmp_path: Path) -> None:
    """Absolute, and relative to the current directory; a space is quoted, and a control character is not offered."""
    named, odd = mount(redis_server.url, start=False), mount(redis_server.url, start=False)
    named.path, odd.path = tmp_path / "the mount", tmp_path / "the \x1c"
    named.start()
    odd.start()
    with _terminal(shell, tmp_path) as terminal:
        for command in ("umount", "skill add", "skill list", "skill remove", "seed"):
            assert terminal.completed(f"vfsd {command} the") == rf"vfsd {command} the\ mount "
        assert terminal.completed(f"vfsd umount {tmp_path}/th") == rf"vfsd umount {tmp_path}/the\ mount "
        assert terminal.completed('vfsd umount "the m').startswith('vfsd umount "the mount')


def test_fish(places: Path, mount: MountFactory, redis_server: RedisServer) -> None:
    path = str(mount(redis_server.url).path)
    assert _fish("vfsd umo", places) == ["umount"]
    assert _fish("vfsd mount --max-m", places) == ["--max-memory"]
    assert _fish("vfsd mount --seed-policy ", places) == ["keep", "seed"]
    assert _fish("vfsd destroy --store sqlite:runs.db ", places) == ["run-42", "team:a@b"]
    assert _fish("vfsd destroy --store=sqlite:runs.db r", places) == ["run-42"]
    assert _fish("vfsd mount --store=sqlite:runs.db --scope=r", places) == ["--scope=run-42"]
    assert _fish(f"vfsd umount {path[:-1]}", places) == [path]
    assert _fish("vfsd mount subd", places) == ["subdirectory/"]


def _request(store: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Ask for the scopes of *store* as the script of zsh does."""
    words = {"COMP_WORDS": f"vfsd destroy --store {store} ", "COMP_CWORD": "4", "_VFSD_COMPLETE": "zsh_complete"}
    return subprocess.run(["vfsd"], env=_environment(**words), cwd=cwd, capture_output=True, text=True, check=False)


def test_a_store_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """The process ends by itself before the store's own limit of time makes an error of it."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        result = _request(f"redis://127.0.0.1:{silent.getsockname()[1]}/0", tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("store", ["redis://127.0.0.1:1/0", "nobody://x", "sqlite:.", "redis://a@b@c"])
def test_a_store_that_cannot_be_used_is_no_error_on_the_terminal(store: str, tmp_path: Path) -> None:
    result = _request(store, tmp_path)
    assert (result.stdout, result.stderr) == ("", "")


def test_a_store_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    result = _request("sqlite:new.db", tmp_path)
    assert (result.stdout.strip(), result.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_is_printed_into_the_line(shell: str, tmp_path: Path) -> None:
    """If the store cannot be reached, and if vfsd was removed after the shell had read the script."""
    with _terminal(shell, tmp_path, VFSD_STORE="redis://127.0.0.1:1/0") as terminal:
        begin = len(terminal.screen)
        assert terminal.completed("vfsd destroy r") == "vfsd destroy r"
        terminal.run("PATH=/usr/bin:/bin; hash -r")
        assert terminal.completed("vfsd umo") == "vfsd umo"
        assert not re.search("error|not found|reach|refused|Traceback", terminal.screen[begin:], re.IGNORECASE)
