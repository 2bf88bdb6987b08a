"""The Node client, the programs in this directory and the example have no errors in TypeScript's strict mode."""

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject


@pytest.fixture(scope="module")
def checked(node: NodeProject) -> NodeProject:
    done = node.check_types("-p", "tests/clients/node")
    assert done.returncode == 0, done.stdout
    return node


@pytest.mark.parametrize("name", ["control.d.mts", "requirements.d.mts", "vfsd.d.mts"])
def test_the_declarations_match_the_code(checked: NodeProject, name: str) -> None:
    """After a change of the JSDoc types, ``tsc -p tests/clients/node`` writes them again."""
    generated = checked.text(f"types/clients/node/{name}")
    assert (CHECKOUT / "clients" / "node" / name).read_text() == generated, (
        f"clients/node/{name} should be:\n{generated}"
    )
