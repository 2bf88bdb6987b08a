"""What commands say about an argument that is almost right: which argument it is, and what is meant perhaps."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import failure
from tests.support.files import NOBODY
from tests.support.mounted import MountFactory, run_vfsd
from tests.support.servers import RedisServer
from vfsd.errors import clause

_FORM = "not understood; expected unix://PATH with the absolute path of the socket, as in unix:///run/redis/redis.sock"


def _last_line(*arguments: str) -> str:
    result = run_vfsd(*arguments, env={**os.environ})
    assert result.returncode == 2, result.stderr
    return result.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["umount", "-l", "m"], "Error: No such option '-l'; did you mean '--lazy'?"),
        (["destroy", "-y", "s"], "Error: No such option '-y'; did you mean '--yes'?"),
        (["umount", "-q", "m"], "Error: No such option '-q'."),
        (["help"], "Error: No such command 'help'; did you mean '--help'?"),
        (
            ["mount", "m", "--scope", "s", "--max-files", "1K"],
            "Error: Invalid value for '--max-files': '1K' is not a valid whole number.",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_hints_of_wrong_usage(arguments: list[str], line: str) -> None:
    assert _last_line(*arguments) == line


@pytest.mark.parametrize("option", ["--max-bytes", "--max-file-bytes", "--max-memory", "--log-max"])
def test_a_wrong_size_names_its_option(option: str) -> None:
    line = _last_line("mount", "m", "--scope", "s", option, "2Q")
    assert line == f"vfsd: {option} 2Q: not a size: write a number of bytes, or one with K, M, G or T, as in 512M"


def test_a_scope_with_odd_bytes_is_shown_with_escapes() -> None:
    line = _last_line("mount", "m", "--scope", os.fsdecode(b"a\xff\n"))
    assert line.startswith(r"vfsd: scope 'a\xff\x0a': a name is ")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the current directory have the file ``runs``, the directory ``directory``."""
    (tmp_path / "runs").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize(
    ("store", "status", "why"),
    [
        ("s.db", 2, "it has no scheme; did you mean sqlite:s.db?"),
        ("runs.sqlite", 2, "it has no scheme; did you mean sqlite:runs.sqlite?"),
        ("runs", 2, "it has no scheme; did you mean sqlite:runs?"),
        ("elsewhere", 2, "it has no scheme; did you mean redis://elsewhere/0?"),
        ("unix:", 2, _FORM),
        ("unix:r.sock", 2, _FORM),
        ("unix://", 2, _FORM),
        ("sqlite:/proc", 3, "it is a directory; name a file in it"),
        ("unix:///proc/version", 3, "that is no socket; name the one that redis.conf calls unixsocket"),
    ],
)
def test_a_store_that_is_almost_right(store: str, status: int, why: str) -> None:
    line = failure(run_vfsd("scopes", "--store", store, env={**os.environ}), status)
    assert line.removeprefix("cannot reach the ").removeprefix("store ") == f"{store}: {why}"


@pytest.mark.usefixtures("places")
def test_a_mount_from_a_directory_in_place_of_a_file() -> None:
    result = run_vfsd("mount", "m", "--scope", "s", "--store", "sqlite:directory", env={**os.environ})
    assert result.stderr.splitlines()[-1].endswith("/directory: it is a directory; name a file in it")


def test_a_socket_that_nobody_listens_at_is_a_socket(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "r.sock"))
    line = failure(run_vfsd("scopes", "--store", f"unix://{tmp_path}/r.sock", env={**os.environ}), 3)
    assert "Connection refused; start Redis there" in line


def test_a_database_that_the_server_does_not_have(redis_server: RedisServer) -> None:
    url = redis_server.url.replace("db=0", "db=9999")
    line = failure(run_vfsd("scopes", "--store", url, env={**os.environ}), 4)
    assert line.endswith("; name database 0 in the URL, as in redis://HOST:PORT/0, or raise 'databases' in redis.conf")


def test_a_foreign_question_becomes_a_clause() -> None:
    assert clause("Wrong? Really?!") == "Wrong? Really"


@pytest.mark.parametrize("kind", ["redis", "sqlite"])
def test_destroy_does_not_speak_of_take_over(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, kind: str
) -> None:
    mounted = mount(redis_server.url if kind == "redis" else f"sqlite:{tmp_path}/scopes.db")
    line = failure(mounted.vfsd("destroy", mounted.scope, "--yes"), 7)
    assert "is mounted" in line
    assert "--take-over" not in line
    elsewhere = str(mounted.path.parent / "elsewhere")
    refused = mounted.vfsd("mount", "-f", elsewhere, "--scope", mounted.scope)
    assert refused.returncode == 7
    assert refused.stderr.endswith(", or mount with --take-over if it hangs\n")


def test_skills_of_a_dead_daemon(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    mounted.kill()
    line = failure(mounted.vfsd("skill", "list", str(mounted.path)), 12)
    assert line == f"{mounted.path}: its daemon has ended: mount scope {mounted.scope} there again with 'vfsd mount'"


def test_skills_of_a_mount_of_another_user(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    command = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", sys.executable, "-m", "vfsd", "skill", "list"]
    environment = {**mounted.environment, "VFSD_RUNTIME_DIR": "/nonexistent"}
    result = subprocess.run([*command, mounted.path], env=environment, capture_output=True, text=True, check=False)
    assert failure(result, 12) == f"{mounted.path}: uid 0 has mounted it: run this command as that user"
