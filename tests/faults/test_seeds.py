"""A change turns a seed into a stored file while the store fails or gives no answer: memory and store stay equal."""

import os
from functools import partial

import pytest

from tests.faults.conftest import ProxyFactory
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.outcomes import OUTAGE, PendingCall, outcome, write
from tests.support.proxy import Direction
from tests.support.servers import RedisServer
from tests.support.store_comparison import stored_tree

SKILL_MD = "---\nname: review\ndescription: how to review\n---\n"
MD = "skills/review/SKILL.md"


def _mounted_with_a_skill(mount: MountFactory, url: str) -> Mounted:
    mounted = mount(url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    assert mounted.vfsd("skill", "add", str(mounted.path), "-", text=SKILL_MD).returncode == 0
    return mounted


@pytest.mark.parametrize(
    ("direction", "after"), [(Direction.REPLY, 0), (Direction.REQUEST, 10)], ids=["stored", "not stored"]
)
def test_a_write_in_doubt(
    mount: MountFactory, server: RedisServer, make_proxy: ProxyFactory, direction: Direction, after: int
) -> None:
    proxy = make_proxy(server)
    mounted = _mounted_with_a_skill(mount, proxy.url)
    file, original = mounted.path / MD, SKILL_MD.encode()
    cut = proxy.cut_commit(direction, after, lasts=True)
    writing = PendingCall(partial(write, file, b"X"))
    assert cut.done.wait(60)
    with proxy.refusing():
        assert writing.outcome() == "EIO"
        assert file.read_bytes() == original
    wait_until(lambda: outcome(partial(write, file, b"Y", 4)) == "done", "writing to work again")
    expected = (b"X" if direction is Direction.REPLY else b"-") + original[1:4] + b"Y" + original[5:]
    assert file.read_bytes() == expected
    facts = stored_tree(server.url, mounted.scope).facts
    assert facts[os.fsencode(MD)].content == expected
    assert set(facts) == {b"", b"skills", b"skills/review", os.fsencode(MD)}


def test_a_seed_stays_a_seed_if_a_write_fails_without_the_store(
    mount: MountFactory, server: RedisServer, make_proxy: ProxyFactory
) -> None:
    proxy = make_proxy(server)
    mounted = _mounted_with_a_skill(mount, proxy.url)
    (mounted.path / "d").mkdir()
    with proxy.refusing():
        assert outcome(partial(write, mounted.path / MD, b"X")) == "EIO"
        assert mounted.vfsd("seed", str(mounted.path), "d/new", "--from", "-", text="seeded meanwhile").returncode == 0
        assert (mounted.path / "d/new").read_text() == "seeded meanwhile"
    assert (mounted.path / MD).read_text() == SKILL_MD
    assert set(stored_tree(server.url, mounted.scope).facts) == {b"", b"d"}
