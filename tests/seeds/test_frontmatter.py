"""The front matter of a SKILL.md: what is accepted, and that everything else is refused with one line."""

import errno
import subprocess
import sys

import pytest

from vfsd.errors import FsError
from vfsd.seeds.frontmatter import front_matter

DESCRIBED = b"description: how to review\n"


@pytest.mark.parametrize(
    "skill_md",
    [
        b"---\nname: review\n" + DESCRIBED + b"---\n# Review\n---\n",
        b"\xef\xbb\xbf---\r\nname: review\r\ndescription: how to review\r\n---\r\n",
        b"---  \nname: 'review'\ndescription: >\n  how to\n  review\nlicense: MIT\n---",
    ],
    ids=["plain", "windows", "folded"],
)
def test_name_and_description(skill_md: bytes) -> None:
    assert front_matter(skill_md) == ("review", "how to review")


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"", "no list of keys and values"),
        (b"- name\n", "no list of keys and values"),
        (DESCRIBED, "lacks the name"),
        (b"name: x\n", "lacks the description"),
        (b"name: x\ndescription:\n", "lacks the description"),
        (b"name: x\ndescription: ' '\n", "description in its front matter must be text"),
        (b"name: 7\n" + DESCRIBED, "name in its front matter must be text"),
        (b"name: a/b\n" + DESCRIBED, "cannot be a directory's"),
        (b"name: ..\n" + DESCRIBED, "cannot be a directory's"),
        (b'name: "a\\0b"\n' + DESCRIBED, "cannot be a directory's"),
        (b"name: " + b"n" * 256 + b"\n" + DESCRIBED, "cannot be a directory's"),
        (b"name: [x\n", "no YAML: .* in line 3"),
        (b"name: !!python/object:os.system x\n", "no YAML: .* in line 2"),
        (b"name: !!int ''\n", "no YAML"),
        (b"name: !!timestamp x\n", "no YAML"),
        (b"name: 2026-13-45\n", "no YAML"),
        (b"name: \xff\n", "no UTF-8"),
        (b"name: " + b"[" * 5_000, "too deep"),
        (b"name: " + b"[" * 33 + b"]" * 33, "too deep"),
        (b"name: [" + b"x," * 3_000 + b"]", "too many values"),
        (b"a: &a [x]\nname: *a\n", r"alias \(\*\)"),
        (b"a: &a [x]\n" + b"b: [*a, *a]\n" * 1_000, r"alias \(\*\)"),
        (b"a: &a [*a]\n", r"alias \(\*\)"),
        (b"<<: {name: x}\n" + DESCRIBED, r"merges objects \(<<\)"),
        (b"'<<': {name: x}\n" + DESCRIBED, r"merges objects \(<<\)"),
        (b"!!merge x: {name: x}\n" + DESCRIBED, r"merges objects \(<<\)"),
        (b"name: x\n" * 2_500, "more than 16384"),
        (b"name: x\n" * 5_000, "more than 16384"),
    ],
)
def test_what_is_unfit_is_refused_with_the_reason(head: bytes, why: str) -> None:
    with pytest.raises(FsError, match=why) as caught:
        front_matter(b"---\n" + head + b"\n---\n")
    assert caught.value.errno == errno.EINVAL
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("skill_md", "why"),
    [(b"", "no front matter"), (b"# Review\n---\n", "no front matter"), (b"---\nname: x\n", "has no end")],
)
def test_a_head_needs_both_lines_of_dashes(skill_md: bytes, why: str) -> None:
    with pytest.raises(FsError, match=why):
        front_matter(skill_md)


def test_text_that_grows_is_refused_before_the_parser_makes_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the installed parser would do with it."""
    loaded: list[str] = []
    monkeypatch.setattr("yaml.safe_load", loaded.append)
    merged = b"".join(b"k%d: &k%d {<<: [*k%d, *k%d]}\n" % (n, n, n - 1, n - 1) for n in range(1, 30))
    with pytest.raises(FsError, match="merges objects"):
        front_matter(b"---\nk0: &k0 {name: x}\n" + merged + b"---\n")
    assert not loaded


def test_what_comes_after_the_front_matter_is_not_looked_at() -> None:
    class Counted(bytes):
        def split(self, *_: object, **__: object) -> list[bytes]:
            raise AssertionError("all of it was looked at")

    assert front_matter(Counted(b"---\nname: x\n" + DESCRIBED + b"---\n" + b"\n" * 100_000)).name == "x"


def test_a_mount_without_skills_does_not_load_the_parser() -> None:
    script = "import sys, vfsd.cli.mount, vfsd.daemon.lifecycle; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
