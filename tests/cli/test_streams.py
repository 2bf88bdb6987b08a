"""Standard input, output and error that are closed or full: one line and a status, no traceback, and mounts work."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Detached, detached, failure, success
from tests.support.mounted import PATIENCE, MountFactory
from tests.support.servers import RedisServer

ENVIRONMENT = {**os.environ, "VFSD_RUNTIME_DIR": "/nonexistent/run"}


def _shell(line: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the shell command *line*, in which ``vfsd`` is this one."""
    vfsd = f'vfsd() {{ "{sys.executable}" -m vfsd "$@"; }}'
    command = ["bash", "-c", f"{vfsd}; {line}"]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", ["--help", "status --json", "completion bash", "umount --help"])
def test_output_that_cannot_be_written(command: str, unbuffered: str) -> None:
    result = _shell(f"vfsd {command} >/dev/full", {**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered})
    assert failure(result, 1) == "cannot write the output: No space left on device"


def test_errors_that_cannot_be_written() -> None:
    assert _shell("vfsd umount /nonexistent 2>/dev/full", ENVIRONMENT).returncode == 1


def test_a_reader_that_ends_early_is_no_failure_to_tell() -> None:
    assert _shell("vfsd mount --help | head -1", ENVIRONMENT).stderr == ""


@pytest.mark.parametrize("command", ["seed m /a --from -", "skill add m -"])
def test_content_from_a_standard_input_that_is_closed(command: str, tmp_path: Path) -> None:
    line = failure(_shell(f"cd '{tmp_path}'; vfsd {command} <&-", ENVIRONMENT), 2 if "seed" in command else 12)
    assert line.startswith("standard input is closed: " if "seed" in command else f"{tmp_path}/m: no vfsd mount there")


def test_nothing_is_destroyed_without_standard_input(mount: MountFactory, redis_server: RedisServer) -> None:
    mounted = mount(redis_server.url)
    assert mounted.stop() == 0
    result = _shell(f"vfsd destroy {mounted.scope} <&-", mounted.environment)
    assert result.returncode == 14
    assert result.stderr.splitlines()[-1].startswith("vfsd: nothing was destroyed: ")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_mount_with_closed_descriptors(mount: MountFactory, redis_server: RedisServer, closed: str) -> None:
    mounted = mount(redis_server.url, start=False)
    with detached(mounted) as daemon:
        result = _shell(_mount_line(daemon, mounted.scope, str(mounted.log), closed), mounted.environment)
        assert result.returncode == 0, result.stderr
        (daemon.path / "file").write_bytes(b"content")
        success(daemon.mount())


def _mount_line(daemon: Detached, scope: str, log: str, closed: str) -> str:
    return f"vfsd mount '{daemon.path}' --scope {scope} --log-file '{log}' {closed}"


def test_an_interrupt_during_the_imports(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    result = _shell("vfsd status", {**ENVIRONMENT, "PYTHONPATH": str(tmp_path)})
    assert failure(result, 130) == "interrupted"


def test_the_installed_command_is_the_one_that_takes_interrupts() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    assert re.search(r'^vfsd = "vfsd.__main__:main"$', project.read_text(), re.MULTILINE)
