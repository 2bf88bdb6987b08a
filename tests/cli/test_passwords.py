"""The store's password: where it can come from, and that ``ps`` does not show it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import detached, failure, success
from tests.support.mounted import MountFactory, run_vfsd, wait_until
from tests.support.servers import RedisServer, ServerOptions, redis_program
from vfsd.store.url import has_password, with_password

PASSWORD = "geheim/w@: %é"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(redis_program(), ServerOptions(tcp=True, password=PASSWORD)) as started:
        with started.client() as client:
            client.acl_setuser("agent", enabled=True, passwords=[f"+{PASSWORD}"], keys=["*"], commands=["+@all"])
        yield started


def _arguments(pid: int) -> list[bytes]:
    """Return the arguments of process *pid*, as ``ps`` shows them."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


SCRIPT = Path(sys.executable).with_name("vfsd")
PROGRAMS = [[sys.executable, "-m", "vfsd"], [sys.executable, str(SCRIPT)], [str(SCRIPT)]]


@pytest.mark.parametrize("form", ["--store URL", "--store=URL"])
@pytest.mark.parametrize("program", PROGRAMS, ids=["python -m vfsd", "python vfsd", "vfsd"])
@pytest.mark.parametrize("foreground", [False, True], ids=["detached", "foreground"])
def test_the_command_line_of_a_daemon_shows_no_password(
    mount: MountFactory, server: RedisServer, program: list[str], form: str, *, foreground: bool
) -> None:
    mounted = mount(server.url, start=False)
    store = [form.replace("URL", server.tcp_url)] if "=" in form else ["--store", server.tcp_url]
    command = [*program, "mount", str(mounted.path), *store, "--scope", mounted.scope, "--log-file", str(mounted.log)]
    with detached(mounted) as daemon:
        process = subprocess.Popen([*command, *(["--foreground"] if foreground else [])], env=mounted.environment)
        wait_until(lambda: mounted.is_mounted() and "mounted at" in mounted.log.read_text(), "the mount")
        pid = process.pid if foreground else daemon.pid()
        arguments = _arguments(pid)
        assert b"geheim" not in b" ".join(arguments)
        shown = [argument.rstrip(b" ") for argument in arguments]
        hidden = f"redis://:***@127.0.0.1:{server.port}/0".encode()
        assert hidden in {argument.removeprefix(b"--store=") for argument in shown}, shown
        after = shown[shown.index(b"--scope") :]
        assert after[:4] == [b"--scope", mounted.scope.encode(), b"--log-file", str(mounted.log).encode()]
        success(mounted.vfsd("umount", str(mounted.path)))
        assert process.wait(60) == 0


@pytest.mark.parametrize("password", ["x", "xyz", "x" * 200])
def test_a_password_of_any_length_is_overwritten(password: str) -> None:
    url = f"redis://:{password}@127.0.0.1:1/0"
    program = "import sys; from vfsd.host.command_line import hide_passwords; hide_passwords(sys.argv); "
    program += "print(open('/proc/self/cmdline').read(), end='')"
    command = [sys.executable, "-c", program, "--store", url, "x", f"--store={url}", "last"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")[3:]
    assert (shown[0], shown[2], shown[4:]) == ("--store", "x", ["last", ""])
    for argument, prefix in ((shown[1], ""), (shown[3], "--store=")):
        assert argument.startswith(prefix)
        rest = argument.removeprefix(prefix)
        assert len(rest) == len(url)
        assert rest.rstrip(" ") == ("redis://:***@127.0.0.1:1/0" if len(password) > 2 else "*" * len(url))


@pytest.mark.parametrize("source", ["file", "variable"])
@pytest.mark.parametrize("url", ["redis://{tcp}", "redis://agent@{tcp}", "unix://{unix}", "unix://agent@{unix}"])
def test_the_password_can_come_from_a_file_or_a_variable(
    mount: MountFactory, server: RedisServer, tmp_path: Path, source: str, url: str
) -> None:
    mounted = mount(url.format(tcp=f"127.0.0.1:{server.port}/0", unix=f"{server.socket}?db=0"), start=False)
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    options = ["--store-password-file", str(file)] if source == "file" else []
    environment = {**mounted.environment, **({"VFSD_STORE_PASSWORD": PASSWORD} if source == "variable" else {})}
    with detached(mounted) as daemon:
        success(daemon.mount(*options, env=environment))
        assert b"geheim" not in b" ".join(_arguments(daemon.pid()))
        assert mounted.scope in success(run_vfsd("scopes", *options, env=environment))
        assert "already mounted" in success(daemon.mount(*options, env=environment))
        success(mounted.vfsd("umount", str(mounted.path)))
        success(run_vfsd("destroy", mounted.scope, "--yes", *options, env=environment))
    assert "geheim" not in mounted.log.read_text()


def test_the_password_of_the_url_comes_before_the_variable(mount: MountFactory, server: RedisServer) -> None:
    environment = {**os.environ, "VFSD_STORE_PASSWORD": "wrong"}
    success(run_vfsd("scopes", "--store", server.tcp_url, env=environment))
    assert failure(run_vfsd("scopes", "--store", f"redis://127.0.0.1:{server.port}/0", env=environment), 4)


def test_a_variable_does_not_disturb_a_store_without_passwords(tmp_path: Path) -> None:
    environment = {**os.environ, "VFSD_STORE_PASSWORD": "x"}
    result = run_vfsd("scopes", "--store", f"sqlite:{tmp_path}/db", env=environment)
    assert "password" not in result.stderr


@pytest.mark.parametrize(
    ("content", "url", "why"),
    [
        (None, "redis://127.0.0.1:1/0", "No such file or directory"),
        ("\n", "redis://127.0.0.1:1/0", "empty; write the password of the store into it"),
        ("x" * 70_000, "redis://127.0.0.1:1/0", "longer than any password"),
        ("x", "redis://:secret@127.0.0.1:1/0", "the store redis://:***@127.0.0.1:1/0 has a password already"),
        ("x", "redis://127.0.0.1:1/0?password=secret", "has a password already"),
        ("x", "sqlite:/nowhere/db", "the store sqlite:/nowhere/db takes no password"),
    ],
    ids=["missing", "empty", "long", "two", "two in the query", "sqlite"],
)
def test_a_password_file_that_cannot_be_used_is_refused(
    tmp_path: Path, content: str | None, url: str, why: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content)
    arguments = ["scopes", "--store", url, "--store-password-file", str(file)]
    line = failure(run_vfsd(*arguments, env=dict(os.environ)), 2)
    assert line.startswith(f"--store-password-file {file}: ")
    assert why in line
    assert "secret" not in line


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h:1/0", "redis://:a%2Fb@h:1/0"),
        ("rediss://u@h:1/0?ssl_ca_certs=/x", "rediss://u:a%2Fb@h:1/0?ssl_ca_certs=/x"),
        ("unix:///s?db=1", "unix://:a%2Fb@/s?db=1"),
        ("redis+sentinel://h:1,i:2/svc?sentinel_password=p", "redis+sentinel://:a%2Fb@h:1,i:2/svc?sentinel_password=p"),
    ],
)
def test_a_password_is_put_where_a_url_has_it(url: str, expected: str) -> None:
    assert not has_password(url)
    assert with_password(url, "a/b") == expected
    assert has_password(expected)
