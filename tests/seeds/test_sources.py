"""Reading skills and trees from a disk: modes, links as they are or followed, and what cannot be seeded."""

import os
import signal
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.seeds.conftest import SKILL_MD
from tests.support.files import NOBODY
from vfsd.cli.parsing import parse_seed, parse_skill
from vfsd.config import SeedSpec
from vfsd.errors import UsageError
from vfsd.seeds.sources import check_sources, read_file, read_seed, read_skill


def test_a_skill_follows_links_and_a_tree_keeps_them(skill: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/\udcff").write_bytes(b"shared")
    (skill / "linked").symlink_to("../shared")
    source = read_skill(SeedSpec(str(skill), None))
    assert source.dest == b"/skills/review"
    assert stat.S_ISDIR(source.nodes[b"linked",].mode)
    assert source.nodes[b"linked", b"\xff"].content.chunks == {0: b"shared"}
    assert source.nodes[b"scripts", b"run.sh"].mode == stat.S_IFREG | 0o755
    tree = read_seed(SeedSpec(str(skill), "/t"))
    assert tree.nodes[b"linked",].target == b"../shared"
    assert (b"linked", b"\xff") not in tree.nodes


def test_what_cannot_be_seeded(skill: Path, tmp_path: Path) -> None:
    (skill / "round").symlink_to(".")
    with pytest.raises(UsageError, match="in a circle"):
        read_skill(SeedSpec(str(skill), None))
    (skill / "round").unlink()
    (skill / "dangling").symlink_to("nowhere")
    with pytest.raises(UsageError, match="dangling: cannot be seeded: No such file"):
        read_skill(SeedSpec(str(skill), None))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(UsageError, match="neither a file, a directory nor a link"):
        read_seed(SeedSpec(str(tmp_path), "/t"))
    with pytest.raises(UsageError, match="a skill is a directory"):
        read_skill(SeedSpec(str(tmp_path), None))


def _hang_up(number: int, frame: object) -> None:
    raise AssertionError("reading a seed waits for somebody")


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Fail instead of waiting forever for a FIFO."""
    signal.signal(signal.SIGALRM, _hang_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _make_fifo(path: Path) -> None:
    os.mkfifo(path)


def _make_zero_device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))


def _make_sparse_bomb(path: Path) -> None:
    path.touch()
    os.truncate(path, 40 << 30)


HOSTILE = [_make_fifo, _make_zero_device, _make_sparse_bomb]


@pytest.mark.parametrize("make", HOSTILE)
@pytest.mark.usefixtures("no_waiting")
def test_a_hostile_file_is_refused_at_once(skill: Path, make: Callable[[Path], None]) -> None:
    """In a seed, in a skill, behind a link, and in the place of SKILL.md."""
    make(skill / "hostile")
    for read in (partial(read_seed, SeedSpec(str(skill), "/t")), partial(read_skill, SeedSpec(str(skill), None))):
        with pytest.raises(UsageError, match=r"hostile: cannot be seeded: (neither|more than 1 GiB)"):
            read()
    with pytest.raises(UsageError, match=r"cannot be seeded: (neither|more than 1 GiB)"):
        read_seed(SeedSpec(str(skill / "hostile"), "/t"))
    with pytest.raises(UsageError, match=r"hostile: cannot be seeded: (not a regular file|more than 1 GiB)"):
        read_file(str(skill / "hostile"))
    (skill / "SKILL.md").unlink()
    (skill / "SKILL.md").symlink_to("hostile")
    with pytest.raises(UsageError, match=r"SKILL.md: (not a regular file|more than 1 GiB)"):
        read_skill(SeedSpec(str(skill), None))
    with pytest.raises(UsageError, match=r"SKILL.md: (not a regular file|more than 1 GiB)"):
        check_sources((SeedSpec(str(skill), None),), ())


def test_a_file_that_is_swapped_while_it_is_seeded_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every moment between two steps of reading a tree."""
    (tmp_path / "secret").write_bytes(b"secret")
    for swapped_at in range(20):
        top = tmp_path / f"tree{swapped_at}"
        (top / "sub").mkdir(parents=True)
        (top / "sub/file").write_bytes(b"harmless")
        left = [swapped_at]

        def swap(left: list[int] = left, top: Path = top) -> None:
            left[0] -= 1
            if left[0] == -1:
                (top / "sub/file").unlink()
                (top / "sub/file").symlink_to(tmp_path / "secret")

        with monkeypatch.context() as patched:
            for name in ("open", "fstat", "listdir", "read"):
                patched.setattr(os, name, _before(swap, getattr(os, name)))
            nodes = read_seed(SeedSpec(str(top), "/t")).nodes
        assert nodes[b"sub", b"file"].content.chunks in ({}, {0: b"harmless"})


def _before(first: Callable[[], None], then: Callable[..., object]) -> Callable[..., object]:
    def both(*arguments: object, **named: object) -> object:
        first()
        return then(*arguments, **named)

    return both


def test_the_link_of_another_user_is_followed_only_to_his_own(skill: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "his").write_bytes(b"his")
    os.chown(tmp_path / "his", NOBODY, NOBODY)
    link = skill / "link"
    for target, owner, is_read in (
        (tmp_path / "his", NOBODY, True),
        (tmp_path / "secret", 0, True),
        (tmp_path / "secret", NOBODY, False),
        (Path("../secret"), NOBODY, False),
        (Path("scripts/../../secret"), NOBODY, False),
        (Path("SKILL.md"), NOBODY, False),
    ):
        link.symlink_to(target)
        os.chown(link, owner, owner, follow_symlinks=False)
        if is_read:
            assert (b"link",) in read_skill(SeedSpec(str(skill), None)).nodes
        else:
            with pytest.raises(UsageError, match="link: cannot be seeded: a link of another user"):
                read_skill(SeedSpec(str(skill), None))
        link.unlink()


@pytest.mark.parametrize("read", [read_file, lambda path: read_seed(SeedSpec(path, "/t"))], ids=["file", "seed"])
def test_the_link_of_another_user_in_the_place_of_what_was_named_is_not_followed(
    tmp_path: Path, read: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret").write_bytes(b"secret")
    Path("named").symlink_to("secret")
    for path in ("named", "./named", f"{tmp_path}/named"):
        read(path)
    os.chown("named", NOBODY, NOBODY, follow_symlinks=False)
    for path in ("named", "./named", f"{tmp_path}/named"):
        with pytest.raises(UsageError, match="named: cannot be seeded: a link of another user"):
            read(path)


def test_a_single_file_is_read_with_its_permissions(tmp_path: Path) -> None:
    for name, owner, mode in (("ours", 0, 0o6755), ("foreign", NOBODY, 0o755)):
        (tmp_path / name).write_bytes(b"content")
        os.chown(tmp_path / name, owner, owner)
        (tmp_path / name).chmod(0o6755)
        assert read_file(str(tmp_path / name)) == (b"content", mode)


def test_a_foreign_file_is_seeded_without_its_set_id_bits(tmp_path: Path) -> None:
    for name, owner in (("ours", 0), ("foreign", NOBODY)):
        (tmp_path / name).touch()
        os.chown(tmp_path / name, owner, owner)
        (tmp_path / name).chmod(0o6755)
    nodes = read_seed(SeedSpec(str(tmp_path), "/t")).nodes
    assert stat.S_IMODE(nodes[b"ours",].mode) == 0o6755
    assert stat.S_IMODE(nodes[b"foreign",].mode) == 0o755


def test_a_source_nested_too_deep_is_refused(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_DIRECTORY)
    for _ in range(300):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_DIRECTORY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    with pytest.raises(UsageError, match="256 directories inside each other"):
        read_seed(SeedSpec(str(tmp_path), "/t"))


def test_a_destination_follows_the_last_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_skill("a") == SeedSpec(f"{tmp_path}/a", None)
    assert parse_skill("a:/s/b") == SeedSpec(f"{tmp_path}/a", "/s/b")
    assert parse_skill("a:b:") == SeedSpec(f"{tmp_path}/a:b", None)
    assert parse_seed("/x:y:z") == SeedSpec("/x:y", "z")
    for wrong in ("a", "a:", ":z", ""):
        with pytest.raises(UsageError):
            parse_seed(wrong)
    with pytest.raises(UsageError):
        parse_skill("")


def test_a_skill_is_read_completely(skill: Path) -> None:
    nodes = read_skill(SeedSpec(str(skill), "/x")).nodes
    assert nodes[b"SKILL.md",].content.chunks == {0: SKILL_MD}
    assert set(nodes) == {
        (),
        (b"SKILL.md",),
        (b"scripts",),
        (b"scripts", b"run.sh"),
        (b"references",),
        (b"references", b"rules.md"),
    }
