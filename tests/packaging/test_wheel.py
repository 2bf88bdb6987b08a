"""``pip install .``: the wheel contains the package and its licence, and installs ``vfsd``. The sdist is complete."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import vfsd

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel, built from a copy of its source files."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "vfsd.1", source / "docs")
    shutil.copytree(ROOT / "vfsd", source / "vfsd", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = (source / "dist").iterdir()
    return built


def test_the_wheel_contains_only_the_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in names if name.startswith("vfsd/")}
    assert {"vfsd/__init__.py", "vfsd/py.typed", "vfsd/cli/__init__.py"} <= package
    others = {name.split("/", 1)[1] for name in names - package}
    metadata = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    assert others == {*metadata, "data/share/man/man1/vfsd.1"}


def test_the_sdist_contains_the_checkout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = tmp_path.iterdir()
    with tarfile.open(built) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    assert {"clients/node/vfsd.mjs", "clients/node/README.md", "examples/mastra/.npmrc", "docs/agents.md"} <= names
    assert {"Makefile", "tools/setup", ".ci/run", "tests/clients/node/package-lock.json"} <= names
    assert not [name for name in names if "node_modules" in name or name.endswith((".pyc", ".db"))]


def test_installed_it_puts_vfsd_on_the_path(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    command = [*pip, "install", "--no-index", "--no-deps", "--quiet", str(wheel)]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    # The dependencies come from the environment of the tests. vfsd itself is not there: its installation is editable.
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "PYTHONPATH": sysconfig.get_path("purelib")}
    assert _printed(["vfsd", "--version"], environment, tmp_path).startswith(f"vfsd {vfsd.__version__}\n")
    where = _printed([str(python), "-c", "import vfsd; print(vfsd.__file__)"], environment, tmp_path)
    assert where.startswith(os.fspath(tmp_path))
    assert _printed(["man", "-w", "vfsd"], environment, tmp_path) == f"{tmp_path}/venv/share/man/man1/vfsd.1\n"


def test_the_client_needs_nothing_else(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = str(tmp_path / "venv" / "bin" / "python")
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-index",
        "--no-deps",
        "--quiet",
        str(wheel),
    ]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    program = (
        "from vfsd import connect\n"
        "try:\n    connect('/nowhere')\n"
        "except ConnectionRefusedError as error:\n    print(error.filename)\n"
    )
    assert _printed([python, "-I", "-c", program], {"VFSD_RUNTIME_DIR": str(tmp_path)}, tmp_path) == "/nowhere\n"


def _printed(command: list[str], environment: dict[str, str], cwd: Path) -> str:
    return subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
