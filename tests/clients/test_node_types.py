"""The Node client, the programs that use it here and the example are what TypeScript takes for right, strictly."""

import pytest

from tests.clients.frameworks import CHECKOUT, NodeProject


@pytest.fixture(scope="module")
def checked(node: NodeProject) -> NodeProject:
    done = node.check_types("-p", "tests/clients/node")
    assert done.returncode == 0, done.stdout
    return node


@pytest.mark.parametrize("name", ["control.d.mts", "vfsd.d.mts"])
def test_the_declarations_are_those_of_the_code(checked: NodeProject, name: str) -> None:
    """After a change of the JSDoc types: ``tsc -p tests/clients/node`` writes them anew."""
    made = checked.text(f"types/clients/node/{name}")
    assert (CHECKOUT / "clients" / "node" / name).read_text() == made, f"clients/node/{name} should be:\n{made}"
