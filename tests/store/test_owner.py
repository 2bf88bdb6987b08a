"""An owner counts as gone only if that is certain. A process that /proc does not show may still be alive."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from vfsd.errors import ScopeDamaged
from vfsd.store.owner import Owner, from_json, this_process

_MAKE = "from vfsd.store.owner import this_process; print(this_process('/mnt/dead').to_json(), flush=True)"
_ASK = "import sys; from vfsd.store.owner import from_json; print(from_json(sys.argv[1]).is_gone())"
_ASK_WITHOUT_DESCRIPTORS = (
    "import resource, sys; from vfsd.store.owner import from_json; owner = from_json(sys.argv[1]);"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0)); print(owner.is_gone())"
)
_ASK_AS_NOBODY = (
    "import os, sys; from vfsd.store.owner import from_json; owner = from_json(sys.argv[1]);"
    "os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534); print(owner.is_gone())"
)
"""It becomes the user nobody only after the imports, because nobody may not be allowed to read the checkout."""


@pytest.fixture
def process() -> Iterator[tuple[subprocess.Popen[str], Owner]]:
    """Yield a living process and its owner record."""
    command = [sys.executable, "-c", f"{_MAKE}; input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        assert living.stdout is not None
        try:
            yield living, from_json(living.stdout.readline())
        finally:
            living.kill()


def _asked(program: str, owner: Owner, *prefix: str) -> str:
    """Run *program* in another process with *owner* as its argument, and return its output."""
    command = [*prefix, sys.executable, "-c", program, owner.to_json()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_ended_process_is_gone_also_while_it_is_a_zombie(process: tuple[subprocess.Popen[str], Owner]) -> None:
    living, owner = process
    assert not owner.is_gone()
    living.kill()
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)
    assert owner.is_gone()
    living.wait()
    assert owner.is_gone()


def test_an_owner_is_gone_if_its_pid_belongs_to_a_process_with_another_start_time() -> None:
    record = json.loads(this_process("/mnt").to_json())
    assert from_json(json.dumps({**record, "started": record["started"] + 1})).is_gone()


def test_an_owner_is_not_gone_for_a_process_without_a_free_descriptor(
    process: tuple[subprocess.Popen[str], Owner],
) -> None:
    living, owner = process
    assert _asked(_ASK_WITHOUT_DESCRIPTORS, owner) == "False"
    living.kill()
    living.wait()
    assert _asked(_ASK_WITHOUT_DESCRIPTORS, owner) == "False"
    assert _asked(_ASK, owner) == "True"


def test_a_process_that_proc_hides_is_not_gone(process: tuple[subprocess.Popen[str], Owner]) -> None:
    living, owner = process
    prefix = ("unshare", "--mount", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh")
    assert _asked(_ASK_AS_NOBODY, owner, *prefix) == "False"
    living.kill()
    living.wait()
    assert _asked(_ASK_AS_NOBODY, owner, *prefix) == "True"


def test_an_unknown_field_is_ignored_and_a_missing_field_is_damage() -> None:
    owner = this_process("/mnt")
    record = json.loads(owner.to_json())
    assert from_json(json.dumps({**record, "added": [1]})) == owner
    for name in record:
        rest = {key: value for key, value in record.items() if key != name}
        with pytest.raises(ScopeDamaged, match=name):
            from_json(json.dumps(rest))
    for text in ("", "[]", "7", "null"):
        with pytest.raises(ScopeDamaged):
            from_json(text)
