"""A seed that is about to be stored when the store fails or gives no answer: then memory and store agree on it."""

import os
from functools import partial

import pytest

from tests.faults.agreement import stored
from tests.faults.calls import OUTAGE, Pending, outcome, write
from tests.faults.conftest import Connector
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.proxy import Way
from tests.support.servers import RedisServer

SKILL_MD = "---\nname: review\ndescription: how to review\n---\n"
MD = "skills/review/SKILL.md"


def _mounted_with_a_skill(mount: MountFactory, url: str) -> Mounted:
    mounted = mount(url, "--store-timeout", "1")
    mounted.expected += OUTAGE
    assert mounted.vfsd("skill", "add", str(mounted.path), "-", text=SKILL_MD).returncode == 0
    return mounted


@pytest.mark.parametrize(("way", "after"), [(Way.REPLY, 0), (Way.REQUEST, 10)], ids=["stored", "not stored"])
def test_a_write_in_doubt(mount: MountFactory, server: RedisServer, proxied: Connector, way: Way, after: int) -> None:
    proxy = proxied(server)
    mounted = _mounted_with_a_skill(mount, proxy.url)
    file, original = mounted.path / MD, SKILL_MD.encode()
    cut = proxy.cut_commit(way, after, lasts=True)
    writing = Pending(partial(write, file, b"X"))
    assert cut.done.wait(60)
    with proxy.refusing():
        assert writing.outcome() == "EIO"
        assert file.read_bytes() == original
    wait_until(lambda: outcome(partial(write, file, b"Y", 4)) == "done", "writing to work again")
    expected = (b"X" if way is Way.REPLY else b"-") + original[1:4] + b"Y" + original[5:]
    assert file.read_bytes() == expected
    facts = stored(server.url, mounted.scope).facts
    assert facts[os.fsencode(MD)].content == expected
    assert set(facts) == {b"", b"skills", b"skills/review", os.fsencode(MD)}


def test_a_write_while_the_store_is_away_leaves_the_seed_a_seed(
    mount: MountFactory, server: RedisServer, proxied: Connector
) -> None:
    proxy = proxied(server)
    mounted = _mounted_with_a_skill(mount, proxy.url)
    (mounted.path / "d").mkdir()
    with proxy.refusing():
        assert outcome(partial(write, mounted.path / MD, b"X")) == "EIO"
        assert mounted.vfsd("seed", str(mounted.path), "d/new", "--from", "-", text="seeded meanwhile").returncode == 0
        assert (mounted.path / "d/new").read_text() == "seeded meanwhile"
    assert (mounted.path / MD).read_text() == SKILL_MD
    assert set(stored(server.url, mounted.scope).facts) == {b"", b"d"}
