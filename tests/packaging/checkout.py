"""A checkout on a machine that the test makes up: what is installed there, and who was asked to install what.

``tools/setup`` and the Makefile are the real ones. The machine is a PATH with only what the test put there: real tools
by link, and an ``apt-get``, a ``sudo`` and a ``python3`` that write down how they were called instead of reaching for
the network. The virtual environment that this ``python3`` makes runs the Python of the tests, apart
from the set-up's question whether things can be imported: they can, and it is asked often.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ALWAYS_THERE = (
    *("cat", "cp", "dirname", "env", "find", "flock", "grep", "id", "ln", "make", "mkdir", "mktemp", "mountpoint"),
    *("rm", "sed", "sh", "sha256sum", "sort", "tail", "tar", "umount"),
)
"""What every Debian has, and make."""


def _packages() -> dict[str, set[str]]:
    """Return, by package of this Debian, the commands it brings: as tools/setup has them, and what builds pyfuse3."""
    brings: dict[str, set[str]] = {"gcc": {"gcc"}, "pkg-config": {"pkg-config"}, "python3": {"python3"}}
    (lists,) = re.findall(r"^RUN_TOOLS=.*?^main", (ROOT / "tools" / "setup").read_text(), re.DOTALL | re.MULTILINE)
    for command, package in re.findall(r"([\w-]+):([\w-]+)", lists):
        brings.setdefault(package, set()).add(command)
    return brings


PACKAGES = _packages()

_APT = """#!/bin/sh
echo "apt-get $*" >>"$MACHINE/calls"
case "$*" in
    *install*) ;;
    *) exit 0 ;;
esac
if [ -e "$MACHINE/apt-is-broken" ]; then echo "E: no network" >&2; exit 100; fi
for package; do
    [ ! -d "$MACHINE/packages/$package" ] || ln -sf "$MACHINE/packages/$package"/* "$MACHINE/bin/"
done
"""

_SUDO = """#!/bin/sh
echo "sudo $*" >>"$MACHINE/calls"
exec "$@"
"""

_PKG_CONFIG = """#!/bin/sh
exit 0
"""

_PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) [ ! -e "$MACHINE/python-is-old" ] ;;
    "-m venv "*)
        echo "python3 $*" >>"$MACHINE/calls"
        mkdir -p .venv/bin
        echo "command = python3 -m venv $PWD/.venv" >.venv/pyvenv.cfg
        cp "$MACHINE/venv"/* .venv/bin/ ;;
esac
"""

_VENV_PYTHON = f"""#!/bin/sh
case "$*" in
    "-m pip "*)
        echo "pip ${{*#-m pip }}" >>"$MACHINE/calls"
        if [ -e "$MACHINE/pip-is-broken" ]; then echo "ERROR: no network" >&2; exit 1; fi ;;
    "-c import "*) ;;
    *) exec {sys.executable} "$@" ;;
esac
"""

_VENV_VFSD = f"""#!/bin/sh
exec {sys.executable} -m vfsd "$@"
"""


class Checkout:
    """A copy of the checkout at *path*, on a machine described at *machine*."""

    def __init__(self, path: Path, machine: Path) -> None:
        self.path = path
        self.machine = machine
        self._bin = machine / "bin"
        self._copy_the_checkout()
        self._make_the_machine()

    # --- what the machine is like

    def have(self, *packages: str) -> None:
        """Let *packages* be installed already."""
        for package in packages:
            for command in (self.machine / "packages" / package).iterdir():
                (self._bin / command.name).unlink(missing_ok=True)
                (self._bin / command.name).symlink_to(command)

    def have_all(self) -> None:
        """Let every package be installed already."""
        self.have(*PACKAGES)

    def lack(self, command: str) -> None:
        """Let there be no *command*."""
        (self._bin / command).unlink()

    def say(self, fact: str) -> None:
        """Let *fact* hold: ``apt-is-broken``, ``pip-is-broken``, ``python-is-old``."""
        (self.machine / fact).touch()

    def unsay(self, fact: str) -> None:
        """Let *fact* hold no longer."""
        (self.machine / fact).unlink()

    def be_nobody_special(self) -> None:
        """Let the user not be root."""
        self._command("id", "#!/bin/sh\necho 1000\n")

    # --- what happens

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands on the machine."""
        kept = {key: value for key, value in os.environ.items() if key.startswith("LC_") or key in ("HOME", "LANG")}
        here = {"PATH": "bin", "MACHINE": "", "TMPDIR": "tmp", "VFSD_RUNTIME_DIR": "run"}
        places = {name: os.fspath(self.machine / place) for name, place in here.items()}
        return {**kept, **places, "PYTHONPATH": os.fspath(self.path)}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the checkout."""
        program = [*self._found(command[0]), *command[1:]]
        return subprocess.run(
            program, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )

    def setup(self, what: str) -> subprocess.CompletedProcess[str]:
        """Run ``tools/setup WHAT``."""
        return self.run("tools/setup", what)

    def calls(self) -> list[str]:
        """Return who was asked for what since this was last called."""
        log = self.machine / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def move(self, path: Path) -> None:
        """Let the checkout be somewhere else."""
        self.path.rename(path)
        self.path = path

    def _found(self, command: str) -> list[str]:
        return [command] if "/" in command else [os.fspath(self._bin / command)]

    # --- how it is made

    def _copy_the_checkout(self) -> None:
        (self.path / "tests").mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.path)
        for name in ("tools", "vfsd"):
            shutil.copytree(ROOT / name, self.path / name, ignore=shutil.ignore_patterns("__pycache__"))

    def _make_the_machine(self) -> None:
        self._bin.mkdir(parents=True)
        for command in ALWAYS_THERE:
            (self._bin / command).symlink_to(_real(command))
        self._command("apt-get", _APT)
        self._command("sudo", _SUDO)
        for name in ("venv", "tmp"):
            (self.machine / name).mkdir()
        _program(self.machine / "venv" / "python", _VENV_PYTHON)
        _program(self.machine / "venv" / "vfsd", _VENV_VFSD)
        for package, commands in PACKAGES.items():
            self._package(package, commands)

    def _package(self, package: str, commands: set[str]) -> None:
        directory = self.machine / "packages" / package
        directory.mkdir(parents=True)
        made = {"python3": _PYTHON, "pkg-config": _PKG_CONFIG}
        for command in commands:
            if command in made:
                _program(directory / command, made[command])
            else:
                (directory / command).symlink_to(_real(command))

    def _command(self, name: str, text: str) -> None:
        (self._bin / name).unlink(missing_ok=True)
        _program(self._bin / name, text)


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _real(command: str) -> str:
    found = shutil.which(command)
    assert found, f"{command} is not installed: tools/setup dev"
    return found
