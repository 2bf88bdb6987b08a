"""The Node client says in one line which Node and which Mastra it needs, where it has another."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject

CLIENT = CHECKOUT / "clients" / "node"
NEEDS_MASTRA = "vfsd needs @mastra/core 1.71.0 or newer, but "
REMEDY = (
    ": run npm install '@mastra/core@>=1.71.0' in your project,"
    " and install vfsd there with install-links=true in .npmrc"
)
CLASSES = ("FileExistsError", "LocalFilesystem", "StaleFileError")


def imported(node: NodeProject, module: Path | str, *options: str, env: dict[str, str] | None = None) -> str:
    """Import *module*. Return the message of the error, or what it exports."""
    program = (
        f"await import({json.dumps(str(module))}).then("
        "(found) => console.log(Object.keys(found).join(' ')), (error) => console.log(error.message))"
    )
    done = node.run(*options, "--input-type=module", "--eval", program, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.removesuffix("\n")


@pytest.fixture
def vfsd(tmp_path: Path) -> Path:
    """Return the client, in a project without Mastra."""
    shutil.copytree(CLIENT, tmp_path / "node_modules" / "vfsd")
    return tmp_path / "node_modules" / "vfsd" / "vfsd.mjs"


def put_mastra(vfsd: Path, version: str, names: Iterable[str] = CLASSES, **package: Any) -> None:
    """Install a @mastra/core beside *vfsd* whose workspace has classes of these *names*."""
    mastra = vfsd.parents[1] / "@mastra" / "core"
    mastra.mkdir(parents=True)
    exports = {"./package.json": "./package.json", "./workspace": "./workspace.mjs"}
    (mastra / "package.json").write_text(json.dumps({"version": version, "exports": exports} | package))
    (mastra / "workspace.mjs").write_text("".join(f"export class {name} {{}}\n" for name in names))


@pytest.mark.parametrize("module", ["vfsd", "vfsd/control"])
@pytest.mark.parametrize("version", ["20.20.2", "22.12.0", "9.11.2"])
def test_an_old_node_is_told_which_it_should_be(node: NodeProject, module: str, version: str) -> None:
    preload = f"--import=./{Path(__file__).parent.relative_to(CHECKOUT)}/node/old-node.mjs"
    said = imported(node, module, preload, env={"VFSD_TEST_NODE": version})
    assert said == f"vfsd needs Node 22.13 or newer, but this is v{version}: run the program with a newer Node"


@pytest.mark.parametrize("version", ["22.13.0", "23.0.0", "100.0.0-nightly"])
def test_a_newer_node_is_none_too_old(node: NodeProject, version: str) -> None:
    preload = f"--import=./{Path(__file__).parent.relative_to(CHECKOUT)}/node/old-node.mjs"
    said = imported(node, "vfsd/control", preload, env={"VFSD_TEST_NODE": version})
    assert said == "ControlClient VfsdError socketPath"


def test_without_mastra(node: NodeProject, vfsd: Path) -> None:
    why = f"it is not installed where {vfsd.parent} could find it"
    assert imported(node, vfsd) == NEEDS_MASTRA + why + REMEDY


def test_the_control_client_needs_no_mastra(node: NodeProject, vfsd: Path) -> None:
    assert imported(node, vfsd.with_name("control.mjs")) == "ControlClient VfsdError socketPath"


def test_with_an_old_mastra(node: NodeProject, vfsd: Path) -> None:
    put_mastra(vfsd, "1.70.3")
    assert imported(node, vfsd) == f"{NEEDS_MASTRA}version 1.70.3 is installed{REMEDY}"


def test_with_a_mastra_that_hides_its_version(node: NodeProject, vfsd: Path) -> None:
    put_mastra(vfsd, "0.1.0", exports={".": "./index.mjs"})
    assert imported(node, vfsd) == f"{NEEDS_MASTRA}the installed one is older{REMEDY}"


def test_with_a_mastra_that_lacks_a_class(node: NodeProject, vfsd: Path) -> None:
    put_mastra(vfsd, "2.0.0", ["FileExistsError"])
    why = "the installed one has no LocalFilesystem, StaleFileError"
    assert imported(node, vfsd) == NEEDS_MASTRA + why + REMEDY


def test_with_a_mastra_that_fits(node: NodeProject, vfsd: Path) -> None:
    put_mastra(vfsd, "1.71.0")
    assert imported(node, vfsd) == "ControlClient VfsdError VfsdFilesystem"


def test_an_error_of_mastra_itself_is_not_hidden(node: NodeProject, vfsd: Path) -> None:
    put_mastra(vfsd, "1.71.0", ["Broken { static { throw new Error('of its own') } } class Rest"])
    assert imported(node, vfsd) == "of its own"


@pytest.mark.parametrize("manifest", [None, "package.json of a program"])
def test_in_a_bundle_nothing_is_checked(node: NodeProject, vfsd: Path, manifest: str | None) -> None:
    """What a bundle was made from is not there to ask."""
    vfsd.with_name("package.json").unlink()
    if manifest is not None:
        vfsd.with_name("package.json").write_text(json.dumps({"name": manifest, "engines": {"node": ">=99"}}))
    put_mastra(vfsd, "0.0.0-unknown")
    assert imported(node, vfsd) == "ControlClient VfsdError VfsdFilesystem"
