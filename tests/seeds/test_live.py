"""Seeding a live mount: at once, in one step, over what was cached or stored, on read-only mounts, and back again."""

import errno
import os
import threading
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.seeds.conftest import RULES, SCRIPT, SKILL_MD, Kept
from tests.support.mounted import Mounted, MountFactory
from tests.support.servers import RedisServer
from tests.support.syscalls import closing_fd

ROUNDS = 100


@pytest.fixture
def mounted(mount: MountFactory, store: str) -> Mounted:
    return mount(store)


def test_a_seed_appears_where_the_kernel_knew_of_nothing(mounted: Mounted, connected: Connect, kept: Kept) -> None:
    vfs, file = connected(mounted), mounted.path / "lib/deep/file"
    for path in (file, file.parent, mounted.path / "skills/review/SKILL.md", mounted.path / "lib"):
        assert not path.exists()
    assert vfs.seed_file("lib/deep/file", "text")
    assert file.read_bytes() == b"text"
    assert not (mounted.path / "lib/other").exists()
    assert vfs.seed_file("lib/other", b"\0\xff", mode=0o755)
    assert (mounted.path / "lib/other").stat().st_mode & 0o777 == 0o755
    assert vfs.seed_skill("skills/review", SKILL_MD, {"rules.md": RULES}, files={"x/y": "z"}, modes={"x/y": 0o700})
    assert (mounted.path / "skills/review/references/rules.md").read_bytes() == RULES
    assert (mounted.path / "skills/review/x/y").stat().st_mode & 0o777 == 0o700
    assert kept(mounted) == {}


def test_the_same_again_changes_nothing(mounted: Mounted, connected: Connect) -> None:
    vfs, top = connected(mounted), mounted.path / "skills"
    vfs.seed_skill("skills/review", SKILL_MD, {"rules.md": RULES})
    before = [(path, os.stat(path)) for path in (top, *sorted(top.rglob("*")))]
    assert not vfs.seed_skill("skills/review", SKILL_MD, {"rules.md": RULES})
    assert not vfs.seed_file("skills/review/SKILL.md", SKILL_MD)
    assert [(path, os.stat(path)) for path in (top, *sorted(top.rglob("*")))] == before


def test_seeding_again_replaces_and_takes_along_only_what_was_seeded(
    mounted: Mounted, connected: Connect, kept: Kept
) -> None:
    vfs, top = connected(mounted), mounted.path / "skills/review"
    vfs.seed_skill("skills/review", SKILL_MD, {"old.md": "old", "same.md": "same"}, files={"gone/file": "x"})
    (top / "gone/mine").write_bytes(b"mine")
    vfs.seed_file("skills/review/other", "not the skill's")
    with closing_fd(os.open(top / "SKILL.md", os.O_RDONLY)) as fd:
        seen_ns = os.fstat(fd).st_mtime_ns
        assert vfs.seed_skill("skills/review", SKILL_MD + b"more", {"new.md": "new", "same.md": "same"})
        assert os.pread(fd, 1000, 0) == SKILL_MD
    assert (top / "SKILL.md").read_bytes() == SKILL_MD + b"more"
    assert (top / "SKILL.md").stat().st_mtime_ns // 1_000_000 > seen_ns // 1_000_000
    assert sorted(os.listdir(top)) == ["SKILL.md", "gone", "other", "references"]
    assert sorted(os.listdir(top / "references")) == ["new.md", "same.md"]
    assert os.listdir(top / "gone") == ["mine"]
    assert kept(mounted)["skills/review/gone/mine"] == b"mine"


def test_no_reader_sees_half_a_file_or_none(mounted: Mounted, connected: Connect) -> None:
    """Each seeding has content of another length, and content spans several chunks."""
    vfs, path = connected(mounted), mounted.path / "skills/review/SKILL.md"
    contents = [SKILL_MD + b"%d\n" % number * (1_000 + 500 * number) for number in range(7)]
    vfs.seed_skill("skills/review", contents[0])
    seen: set[bytes] = set()
    trouble: list[OSError] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                seen.add(path.read_bytes())
            except OSError as error:
                trouble.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(ROUNDS):
            assert vfs.seed_skill("skills/review", contents[(number + 1) % len(contents)])
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert trouble == []
    assert seen <= set(contents)
    assert len(seen) > 1


def test_a_seed_hides_a_stored_file_until_it_is_removed(mounted: Mounted, connected: Connect, kept: Kept) -> None:
    vfs, file = connected(mounted), mounted.path / "d/file"
    file.parent.mkdir()
    file.write_bytes(b"stored")
    with closing_fd(os.open(file, os.O_RDWR)) as fd:
        assert vfs.seed_file("d/file", "seeded")
        assert file.read_bytes() == b"seeded"
        os.pwrite(fd, b"S", 0)
        assert os.pread(fd, 100, 0) == b"Stored"
    assert kept(mounted) == {"d": None, "d/file": b"Stored"}
    assert vfs.seed_list().seeds == [("d/file", "shadows")]
    assert (vfs.info()["seeded"], vfs.info()["shadowed"], vfs.info()["files"]) == (1, 1, 2)
    assert vfs.seed_remove("d") == 1
    assert file.read_bytes() == b"Stored"
    assert (vfs.info()["seeded"], vfs.info()["shadowed"]) == (0, 0)


def test_what_is_removed_takes_empty_directories_of_its_own_along(mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    (mounted.path / "stored").mkdir()
    vfs.seed_file("stored/a/b/file", "x")
    vfs.seed_skill("skills/one", SKILL_MD)
    assert vfs.seed_remove("stored/a/b/file") == 1
    assert sorted(os.listdir(mounted.path)) == ["skills", "stored"]
    assert os.listdir(mounted.path / "stored") == []
    assert vfs.seed_remove("skills/one") == 1
    assert os.listdir(mounted.path) == ["stored"]
    assert mounted.path.stat().st_nlink == 3
    assert vfs.seed_list() == ([], [])
    with pytest.raises(FileNotFoundError, match="nothing is seeded there"):
        vfs.seed_remove("stored")


def test_a_file_and_a_directory_cannot_replace_each_other(mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    (mounted.path / "directory").mkdir()
    (mounted.path / "file").touch()
    with pytest.raises(IsADirectoryError, match="directory is a directory, where a file is to be seeded"):
        vfs.seed_file("directory", "x")
    with pytest.raises(NotADirectoryError):
        vfs.seed_file("file/below", "x")
    with pytest.raises(NotADirectoryError):
        vfs.seed_skill("file", SKILL_MD)
    with pytest.raises(IsADirectoryError):
        vfs.seed_file("", "x")
    for bad in ("../out", "a//b", "/a", "."):
        with pytest.raises(OSError, match="no name for a file") as caught:
            vfs.seed_skill("skills/review", SKILL_MD, files={bad: "x"})
        assert caught.value.errno == errno.EINVAL
    with pytest.raises(NotADirectoryError):
        vfs.seed_skill("skills/review", SKILL_MD, files={"a": "x", "a/b": "y"})
    with pytest.raises(OSError, match="'modes' has scripts/b, but 'files' does not"):
        vfs.seed_skill("skills/review", SKILL_MD, files={"scripts/a": "x"}, modes={"scripts/b": 0o755})
    assert sorted(os.listdir(mounted.path)) == ["directory", "file"]


def test_a_skill_is_refused_with_what_it_lacks(mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    for skill_md, lack in (
        ("# Review", "no front matter"),
        ("---\nname: review\n---\n", "lacks the description"),
        ("---\ndescription: x\n---\n", "lacks the name"),
    ):
        with pytest.raises(OSError, match=lack) as caught:
            vfs.seed_skill("skills/review", skill_md)
        assert caught.value.errno == errno.EINVAL
    assert os.listdir(mounted.path) == []


def test_a_read_only_mount_can_be_seeded(
    mounted: Mounted, mount: MountFactory, connected: Connect, kept: Kept, skill: Path
) -> None:
    (mounted.path / "file").write_bytes(b"stored")
    reading = mount(mounted.store, "--read-only", scope=mounted.scope, start=False)
    reading.start("--skill", str(skill))
    vfs = connected(reading)
    assert (reading.path / "skills/review/scripts/run.sh").read_bytes() == SCRIPT
    assert not (reading.path / "new").exists()
    assert vfs.seed_file("new", "seeded")
    assert vfs.seed_file("file", "seeded")
    assert (reading.path / "new").read_bytes() == (reading.path / "file").read_bytes() == b"seeded"
    with pytest.raises(OSError, match="Read-only") as caught:
        (reading.path / "new").write_bytes(b"x")
    assert caught.value.errno == errno.EROFS
    assert vfs.seed_remove("") == 5
    assert (reading.path / "file").read_bytes() == b"stored"
    assert kept(mounted) == {"file": b"stored"}


def test_a_tree_is_seeded_as_it_is_and_merges_with_what_is_stored(
    mount: MountFactory, redis_server: RedisServer, tmp_path: Path, kept: Kept
) -> None:
    tree = tmp_path / "tree"
    (tree / "sub/empty").mkdir(parents=True)
    (tree / "sub/file").write_bytes(b"seeded")
    (tree / "sub/link").symlink_to("./file")
    mounted = mount(redis_server.url)
    (mounted.path / "t/sub").mkdir(parents=True)
    (mounted.path / "t/sub/mine").write_bytes(b"mine")
    mounted.kill()
    mounted.start("--seed", f"{tree}:/t", "--seed", f"{tree / 'sub/file'}:t/single")
    assert sorted(os.listdir(mounted.path / "t/sub")) == ["empty", "file", "link", "mine"]
    assert os.readlink(mounted.path / "t/sub/link") == "./file"
    assert (mounted.path / "t/sub/link").read_bytes() == (mounted.path / "t/single").read_bytes() == b"seeded"
    assert (mounted.path / "t/sub").stat().st_nlink == 3
    assert kept(mounted) == {"t": None, "t/sub": None, "t/sub/mine": b"mine"}
    (mounted.path / "t/sub/new").mkdir()
    mounted.kill()
    mounted.start()
    assert sorted(os.listdir(mounted.path / "t/sub")) == ["mine", "new"]


def test_which_stored_files_were_kept_is_listed(
    mount: MountFactory, redis_server: RedisServer, connected: Connect, skill: Path
) -> None:
    mounted = mount(redis_server.url)
    (mounted.path / "skills/review").mkdir(parents=True)
    (mounted.path / "skills/review/SKILL.md").write_bytes(b"mine")
    mounted.kill()
    mounted.start("--skill", str(skill), "--seed-policy", "keep")
    vfs = connected(mounted)
    assert dict(vfs.seed_list().seeds)["skills/review/SKILL.md"] == "kept"
    assert vfs.seed_list().skills[0].files == ["SKILL.md", "references/rules.md", "scripts/run.sh"]
    assert not vfs.seed_file("skills/review/SKILL.md", "another")
    assert (mounted.path / "skills/review/SKILL.md").read_bytes() == b"mine"
    (mounted.path / "skills/review/SKILL.md").unlink()
    assert "skills/review/SKILL.md" not in dict(vfs.seed_list().seeds)
