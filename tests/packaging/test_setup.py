"""``tools/setup`` installs only what is missing. If it fails, its last line says why."""

import fcntl
import subprocess
from pathlib import Path

import pytest

from tests.packaging.checkout import Checkout

BUILT_WITH = {"gcc", "pkg-config", "python3", "python3-dev", "python3-venv"}
TESTED_WITH = {"git", "redis-server", "rsync", "sqlite3", "shellcheck", "systemd"}


def last_line(result: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a set-up that failed."""
    assert result.returncode != 0
    assert result.stdout == ""
    return result.stderr.splitlines()[-1]


def installed(calls: list[str]) -> set[str]:
    """Return the packages that *calls* of apt-get installed."""
    lists = [call.partition(" install ")[2] for call in calls if "apt-get" in call]
    return {package for packages in lists for package in packages.split()}


@pytest.mark.parametrize("arguments", [[], ["all"]])
def test_a_missing_or_unknown_argument_shows_the_usage(checkout: Checkout, arguments: list[str]) -> None:
    result = checkout.run("tools/setup", *arguments)
    assert (result.returncode, last_line(result)) == (2, "setup: usage: tools/setup run|dev|bench")


def test_on_an_empty_machine_it_installs_everything(checkout: Checkout) -> None:
    result = checkout.setup("run")
    assert result.returncode == 0, result.stderr
    calls = checkout.calls()
    assert calls[0] == "apt-get -q update"
    assert installed(calls) >= BUILT_WITH | {"fuse3"}
    assert not installed(calls) & TESTED_WITH
    assert calls[2:] == ["python3 -m venv --clear .venv", "pip install --quiet --no-input --editable ."]


def test_the_second_run_installs_nothing(checkout: Checkout) -> None:
    assert checkout.setup("run").returncode == 0
    checkout.calls()
    result = checkout.setup("run")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert checkout.calls() == []


def test_for_the_tests_it_installs_additional_packages(checkout: Checkout) -> None:
    checkout.setup("run")
    checkout.calls()
    result = checkout.setup("dev")
    assert result.returncode == 0, result.stderr
    calls = checkout.calls()
    assert installed(calls) >= TESTED_WITH
    assert not installed(calls) & {"fuse3", *BUILT_WITH}, "they are already installed"
    assert calls[2:] == ["pip install --quiet --no-input --editable .[dev]"]
    assert (checkout.setup("dev").returncode, checkout.setup("run").returncode) == (0, 0)
    assert checkout.calls() == []


def test_for_the_bench_it_installs_the_compared_file_systems(checkout: Checkout) -> None:
    checkout.install_all()
    assert checkout.setup("bench").returncode == 0
    assert checkout.calls()[-1] == "pip install --quiet --no-input --editable .[dev,bench]"
    assert [checkout.setup(what).returncode for what in ("bench", "dev", "run")] == [0, 0, 0]
    assert checkout.calls() == []


def test_a_removed_command_is_installed_again(checkout: Checkout) -> None:
    checkout.setup("dev")
    checkout.calls()
    checkout.remove_command("rsync")
    assert checkout.setup("run").returncode == 0
    assert checkout.calls() == []
    assert checkout.setup("dev").returncode == 0
    assert installed(checkout.calls()) == {"rsync"}


def test_changed_dependencies_are_installed_into_the_same_environment(checkout: Checkout) -> None:
    checkout.install_all()
    checkout.setup("run")
    checkout.calls()
    with (checkout.path / "pyproject.toml").open("a") as project:
        project.write("# another line\n")
    assert checkout.setup("run").returncode == 0
    assert checkout.calls() == ["pip install --quiet --no-input --editable ."]


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout, tmp_path: Path) -> None:
    checkout.install_all()
    checkout.setup("run")
    checkout.calls()
    checkout.move(tmp_path / "elsewhere")
    assert checkout.setup("run").returncode == 0
    assert checkout.calls()[0] == "python3 -m venv --clear .venv"


def test_an_environment_without_python_is_made_again(checkout: Checkout) -> None:
    checkout.install_all()
    checkout.setup("run")
    checkout.calls()
    (checkout.path / ".venv" / "bin" / "python").unlink()
    assert checkout.setup("run").returncode == 0
    assert checkout.calls()[0] == "python3 -m venv --clear .venv"


def test_without_apt_it_names_the_missing_packages(checkout: Checkout) -> None:
    checkout.remove_command("apt-get")
    line = last_line(checkout.setup("run"))
    assert line.startswith("setup: missing here, by the names of Debian's packages: ")
    assert "fuse3" in line
    assert not (checkout.path / ".venv").exists()


def test_without_a_network_it_fails_and_can_be_run_again(checkout: Checkout) -> None:
    checkout.set_fact("apt-is-broken")
    result = checkout.setup("run")
    assert last_line(result).startswith("setup: apt-get install ")
    assert "    E: no network" in result.stderr.splitlines()
    checkout.clear_fact("apt-is-broken")
    checkout.set_fact("pip-is-broken")
    result = checkout.setup("run")
    assert last_line(result).startswith("setup: pip install . failed; all it printed is in ")
    assert "    ERROR: no network" in result.stderr.splitlines()
    checkout.calls()
    checkout.clear_fact("pip-is-broken")
    assert checkout.setup("run").returncode == 0
    assert checkout.calls() == ["pip install --quiet --no-input --editable ."]


def test_a_command_that_is_still_missing_after_its_installation_is_an_error(checkout: Checkout) -> None:
    checkout.install_all()
    checkout.remove_command("rsync")
    (checkout.machine / "packages" / "rsync" / "rsync").unlink()
    line = last_line(checkout.setup("dev"))
    assert line.startswith("setup: apt installed rsync, but ")


def test_a_python_that_is_too_old_is_refused(checkout: Checkout) -> None:
    checkout.install_all()
    checkout.set_fact("python-is-old")
    assert "is not a working Python 3.11 or newer: name another with PYTHON=" in last_line(checkout.setup("run"))
    assert checkout.calls() == []


def test_an_ordinary_user_uses_sudo(checkout: Checkout) -> None:
    checkout.use_ordinary_user()
    assert checkout.setup("run").returncode == 0
    calls = checkout.calls()
    assert calls[0] == "sudo apt-get -q update"
    assert calls[2].startswith("sudo env DEBIAN_FRONTEND=noninteractive apt-get ")
    assert not any(call.startswith("sudo") for call in calls[4:]), "pip and venv need no root"


def test_without_sudo_it_shows_the_command_for_root(checkout: Checkout) -> None:
    checkout.use_ordinary_user()
    checkout.remove_command("sudo")
    assert last_line(checkout.setup("run")).startswith("setup: no sudo here: as root, run 'apt-get install fuse3 ")


def test_a_second_set_up_waits_for_the_first(checkout: Checkout) -> None:
    checkout.install_all()
    with (checkout.path / "tools" / "setup").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(
            ["tools/setup", "run"], cwd=checkout.path, env=checkout.environment, stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        assert second.stderr.readline() == "setup: waiting for another tools/setup to end\n"
        assert checkout.calls() == []
    second.communicate(timeout=120)
    assert second.returncode == 0
    assert "pip install --quiet --no-input --editable ." in checkout.calls()
