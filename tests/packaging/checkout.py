"""A copy of the checkout on a simulated machine, for tests of ``tools/setup`` and the Makefile.

``tools/setup`` and the Makefile are the real ones. The machine is a PATH that contains only what the test puts there:
links to real tools, and a fake ``apt-get``, ``sudo`` and ``python3``. The fakes record how they were called and use no
network. The virtual environment of the fake ``python3`` runs the Python of the tests. Only ``-c import …`` is answered
without a Python: it always succeeds, and the set-up asks it often.
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
"""The tools of every Debian, and make."""


def _packages() -> dict[str, set[str]]:
    """Return the commands of each Debian package: those that tools/setup lists, and those that build pyfuse3."""
    commands_of: dict[str, set[str]] = {"gcc": {"gcc"}, "pkg-config": {"pkg-config"}, "python3": {"python3"}}
    (lists,) = re.findall(r"^RUN_TOOLS=.*?^main", (ROOT / "tools" / "setup").read_text(), re.DOTALL | re.MULTILINE)
    for command, package in re.findall(r"([\w-]+):([\w-]+)", lists):
        commands_of.setdefault(package, set()).add(command)
    return commands_of


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
        self._copy_checkout()
        self._make_machine()

    # --- the state of the machine

    def install(self, *packages: str) -> None:
        """Let *packages* be installed."""
        for package in packages:
            for command in (self.machine / "packages" / package).iterdir():
                (self._bin / command.name).unlink(missing_ok=True)
                (self._bin / command.name).symlink_to(command)

    def install_all(self) -> None:
        """Let every package be installed."""
        self.install(*PACKAGES)

    def remove_command(self, command: str) -> None:
        """Let *command* be missing."""
        (self._bin / command).unlink()

    def set_fact(self, fact: str) -> None:
        """Let *fact* be true: ``apt-is-broken``, ``pip-is-broken`` or ``python-is-old``."""
        (self.machine / fact).touch()

    def clear_fact(self, fact: str) -> None:
        """Let *fact* be false."""
        (self.machine / fact).unlink()

    def use_ordinary_user(self) -> None:
        """Let the user not be root."""
        self._command("id", "#!/bin/sh\necho 1000\n")

    # --- actions

    @property
    def environment(self) -> dict[str, str]:
        """The environment of commands on the machine."""
        kept = {key: value for key, value in os.environ.items() if key.startswith("LC_") or key in ("HOME", "LANG")}
        paths = {"PATH": "bin", "MACHINE": "", "TMPDIR": "tmp", "VFSD_RUNTIME_DIR": "run"}
        absolute = {name: os.fspath(self.machine / path) for name, path in paths.items()}
        return {**kept, **absolute, "PYTHONPATH": os.fspath(self.path)}

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
        """Return the recorded calls of the fake commands since the last call of this method."""
        log = self.machine / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def move(self, path: Path) -> None:
        """Move the checkout to *path*."""
        self.path.rename(path)
        self.path = path

    def _found(self, command: str) -> list[str]:
        return [command] if "/" in command else [os.fspath(self._bin / command)]

    # --- construction

    def _copy_checkout(self) -> None:
        (self.path / "tests").mkdir(parents=True)
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, self.path)
        for name in ("tools", "vfsd"):
            shutil.copytree(ROOT / name, self.path / name, ignore=shutil.ignore_patterns("__pycache__"))

    def _make_machine(self) -> None:
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
        fakes = {"python3": _PYTHON, "pkg-config": _PKG_CONFIG}
        for command in commands:
            if command in fakes:
                _program(directory / command, fakes[command])
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
