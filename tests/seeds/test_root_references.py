"""Files of skills that are answered at the root of real mounts: what is found, what is not, and what changes do."""

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tests.control.conftest import Connect
from tests.seeds.conftest import RULES, SCRIPT, Kept
from tests.support.cli import failure
from tests.support.files import refused
from tests.support.mounted import Mounted, MountFactory, wait_until
from tests.support.servers import RedisServer
from tests.support.syscalls import renameat2
from vfsd.tree.plan_names import RENAME_NOREPLACE

OTHER_MD = "---\nname: other\ndescription: something else\n---\n"
EXTRAS = ("references/deep/only.md", ".git/HEAD", "node_modules/left-pad/index.js", "pyproject.toml")


@pytest.fixture
def skills(skill: Path, tmp_path: Path) -> tuple[str, ...]:
    """Return the options for two skills that have ``references/common.md`` and ``references/deep`` both."""
    other = tmp_path / "other"
    for top, names in ((skill, (*EXTRAS, "references/common.md")), (other, ("references/deep/other.md",))):
        for name in (*names, "references/common.md"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(f"{top.name}/{name}")
    (other / "SKILL.md").write_text(OTHER_MD)
    return "--skill", os.fspath(skill), "--skill", os.fspath(other)


@pytest.fixture
def mounted(mount: MountFactory, redis_server: RedisServer, skills: tuple[str, ...]) -> Mounted:
    return mount(redis_server.url, *skills, "--debug")


@pytest.fixture
def root(mounted: Mounted) -> Path:
    return mounted.path


def test_what_one_skill_has_is_found_at_the_root(root: Path) -> None:
    assert (root / "references/rules.md").read_bytes() == RULES
    assert (root / "references/deep/only.md").read_text() == "review/references/deep/only.md"
    assert (root / "references/deep/other.md").read_text() == "other/references/deep/other.md"
    assert subprocess.run([root / "scripts/run.sh"], check=True, capture_output=True).stdout == b"reviewed\n"
    assert os.path.samefile(root / "scripts/run.sh", root / "skills/review/scripts/run.sh")
    assert (root / "scripts/run.sh").stat().st_nlink == 1


def test_what_none_or_two_have_is_not(root: Path) -> None:
    for name in ("references/none.md", "references/common.md", "references/deep/none.md"):
        assert not (root / name).exists()


def test_what_tools_look_for_is_not_answered(root: Path) -> None:
    assert (root / "skills/review/.git/HEAD").exists()
    for name in ("SKILL.md", "pyproject.toml", ".git", ".git/HEAD", "node_modules", "nothing"):
        assert not os.path.lexists(root / name)


def test_what_the_agent_makes_in_a_skill_is_not_answered_but_below_what_was_seeded(root: Path) -> None:
    (root / "skills/review/build").mkdir()
    (root / "skills/review/build/out").touch()
    (root / "skills/review/references/own.md").write_text("own")
    assert not (root / "build").exists()
    assert (root / "references/own.md").read_text() == "own"


def test_listings(root: Path) -> None:
    assert os.listdir(root) == ["skills"]
    assert sorted(os.listdir(root / "references")) == ["deep", "rules.md"]
    assert sorted(os.listdir(root / "references/deep")) == ["only.md", "other.md"]
    assert os.listdir(root) == ["skills"]
    listed = subprocess.run(["ls", "-laR", "references"], cwd=root, capture_output=True, text=True, check=True)
    assert listed.stderr == ""
    assert "total" in listed.stdout
    found = subprocess.run(["find", "references"], cwd=root, capture_output=True, text=True, check=True)
    assert sorted(found.stdout.split()) == [
        "references",
        "references/deep",
        "references/deep/only.md",
        "references/deep/other.md",
        "references/rules.md",
    ]
    everything = subprocess.run(["find", "."], cwd=root, capture_output=True, text=True, check=True).stdout
    assert "./references" not in everything.split()


def test_dots_lead_where_they_should(root: Path) -> None:
    assert os.path.samefile(root / "references/deep/..", root / "references")
    assert os.path.samefile(root / "references/..", root)
    assert os.path.samefile(root / "references/.", root / "references")
    command = ["sh", "-c", "pwd -P && cat ../rules.md | wc -c"]
    said = subprocess.run(command, cwd=root / "references/deep", capture_output=True, text=True, check=True).stdout
    assert said.split() == [f"{root}/references/deep", f"{len(RULES)}"]


def test_git_sees_nothing_of_it(root: Path) -> None:
    (root / "own").write_text("text")
    assert (root / "references").is_dir()
    for command in (["git", "init", "-q"], ["git", "status", "--porcelain"], ["git", "add", "own"]):
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
        assert "references" not in done.stdout
    assert (root / ".git/HEAD").read_text().startswith("ref:")


def test_programs_that_test_for_existence_find_it(root: Path) -> None:
    assert (root / "references").exists()
    subprocess.run(["test", "-d", root / "references"], check=True)
    assert (root / "references/rules.md").exists()


def _copy(root: Path) -> None:
    (root / "mine").mkdir()
    (root / "mine/file").touch()
    shutil.copytree(root / "mine", root / "references")


AT_THE_NAME: dict[str, Callable[[Path], object]] = {
    "mkdir": lambda root: (root / "references").mkdir(),
    "mkdir, with a slash": lambda root: subprocess.run(["mkdir", "references/"], cwd=root, check=True),
    "mkdir -p": lambda root: subprocess.run(["mkdir", "-p", root / "references"], check=True),
    "makedirs below it": lambda root: subprocess.run(["mkdir", "-p", "./references/of/mine"], cwd=root, check=True),
    "copytree": _copy,
    "ln -s": lambda root: subprocess.run(["ln", "-s", "own", "references"], cwd=root, check=True),
    "symlink": lambda root: (root / "references").symlink_to("own"),
    "link": lambda root: os.link(root / "own", root / "references"),
    "mkfifo": lambda root: os.mkfifo(root / "references"),
    "the shell": lambda root: subprocess.run("echo mine > references", shell=True, cwd=root, check=True),
    "rename": lambda root: (root / "own").rename(root / "references"),
    "rename, not over anything": lambda root: renameat2(root / "own", root / "references", RENAME_NOREPLACE),
    "node": lambda root: subprocess.run(["node", "-e", "fs.mkdirSync('references')"], cwd=root, check=True),
}


def test_what_makes_the_name_at_the_root_finds_it_free(root: Path, mounted: Mounted, kept: Kept) -> None:
    for name, make in AT_THE_NAME.items():
        (root / "own").write_text("mine")
        assert (root / "references/rules.md").exists(), name
        make(root)
        assert "references" in kept(mounted), name
        assert "references" in os.listdir(root), name
        assert not (root / "references/rules.md").exists(), name
        assert (root / "skills/review/references/rules.md").read_bytes() == RULES, name
        subprocess.run(["rm", "-rf", "references", "mine", "own"], cwd=root, check=True)


def test_a_name_deeper_down_is_made_in_what_is_answered(root: Path, mounted: Mounted, kept: Kept) -> None:
    """The first component is looked up by the same system call, and is there."""
    (root / "references/references").mkdir()
    assert kept(mounted) == {"references": None, "references/references": None}


@pytest.mark.parametrize("path", ["references", "references/deep"])
def test_what_is_made_in_it_makes_it_real(
    mounted: Mounted, root: Path, skills: tuple[str, ...], kept: Kept, path: str
) -> None:
    before = (root / path).stat().st_ino
    assert (root / "references/rules.md").read_bytes() == RULES
    subprocess.run(f"echo new > {path}/new.md", shell=True, cwd=root, check=True)
    directories = {"references": None} if path == "references" else {"references": None, path: None}
    assert kept(mounted) == {**directories, f"{path}/new.md": b"new\n"}
    assert (root / path).stat().st_ino == before
    assert os.listdir(root / path) == ["new.md"]
    assert not (root / "references/rules.md").exists()
    assert sorted(os.listdir(root)) == ["references", "skills"]
    mounted.remount()
    assert (root / path / "new.md").read_text() == "new\n"
    assert not (root / "references/rules.md").exists()
    (root / path / "new.md").unlink()
    _remove(root, path)
    assert (root / "references/rules.md").exists()


def _remove(root: Path, path: str) -> None:
    """Remove directory *path*, and the directories above it except the root."""
    for directory in (root / path, *(root / path).parents):
        if directory == root:
            return
        directory.rmdir()


MAKERS: dict[str, Callable[[Path, Path], object]] = {
    "mkdir": lambda _root, path: (path / "new").mkdir(),
    "symlink": lambda _root, path: (path / "new").symlink_to("nowhere"),
    "mkfifo": lambda _root, path: os.mkfifo(path / "new"),
    "link": lambda root, path: os.link(root / "own", path / "new"),
    "link of a seed": lambda root, path: os.link(root / "skills/review/references/rules.md", path / "new"),
    "rename": lambda root, path: (root / "own").rename(path / "new"),
    "rename over what is answered": lambda root, path: (root / "own").rename(path / "only.md"),
    "mv": lambda root, path: subprocess.run(["mv", root / "own", path], check=True),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_every_way_to_make_something_in_it(root: Path, mounted: Mounted, make: Callable[[Path, Path], object]) -> None:
    (root / "own").write_text("mine")
    path = root / "references/deep"
    assert len(os.listdir(path)) == 2
    make(root, path)
    (made,) = os.listdir(path)
    facts = (path / made).lstat()
    mounted.remount()
    again = (path / made).lstat()
    assert (again.st_ino, again.st_mode, again.st_size) == (facts.st_ino, facts.st_mode, facts.st_size)


def test_what_is_only_answered_cannot_be_moved(root: Path, mounted: Mounted, kept: Kept) -> None:
    references, rules = root / "references", root / "references/rules.md"
    calls: list[Callable[[], object]] = [
        lambda: rules.rename(root / "mine.md"),
        lambda: references.rename(root / "mine"),
        lambda: (references / "deep").rename(root / "mine"),
    ]
    for call in calls:
        with refused(errno.EROFS):
            call()
    assert rules.read_bytes() == RULES
    assert kept(mounted) == {}


REMOVERS: dict[str, Callable[[Path], object]] = {
    "rm -rf": lambda root: subprocess.run(["rm", "-rf", "references"], cwd=root, check=True),
    "rm -r, with a path": lambda root: subprocess.run(["rm", "-r", root / "references"], check=True),
    "rmtree": lambda root: shutil.rmtree(root / "references"),
    "find": lambda root: subprocess.run(["find", "references", "-delete"], cwd=root, check=True),
    "rmSync": lambda root: subprocess.run(
        ["node", "-e", "fs.rmSync('references', {recursive: true, force: true})"], cwd=root, check=True
    ),
    "git clean": lambda root: subprocess.run(
        "git init -q . && git clean -fdxq -- references && rm -rf .git references", shell=True, cwd=root, check=True
    ),
}


def test_what_is_only_answered_can_be_removed_until_the_next_seeding(
    root: Path, mounted: Mounted, kept: Kept, connected: Connect
) -> None:
    """Nothing is stored by that, the skills keep what they have, and other names are answered as before."""
    vfs = connected(mounted)
    for way, remove in REMOVERS.items():
        assert (root / "references/rules.md").read_bytes() == RULES, way
        remove(root)
        for name in ("references", "references/rules.md", "references/deep/only.md"):
            assert not os.path.lexists(root / name), way
        assert kept(mounted) == {}, way
        assert (root / "skills/review/references/rules.md").read_bytes() == RULES, way
        assert (root / "scripts/run.sh").read_bytes() == SCRIPT, way
        vfs.seed_file("/elsewhere", f"something else after {way}")


def test_parts_can_be_removed_in_order_only(root: Path, mounted: Mounted, kept: Kept) -> None:
    references = root / "references"
    for directory in (references, references / "deep"):
        with refused(errno.ENOTEMPTY):
            directory.rmdir()
        with refused(errno.EISDIR):
            directory.unlink()
    with refused(errno.ENOTDIR):
        (references / "rules.md").rmdir()
    (references / "rules.md").unlink()
    with refused(errno.ENOENT):
        (references / "rules.md").unlink()
    assert os.listdir(references) == ["deep"]
    for name in ("only.md", "other.md"):
        (references / "deep" / name).unlink()
    (references / "deep").rmdir()
    assert os.listdir(references) == []
    references.rmdir()
    assert not references.exists()
    assert kept(mounted) == {}


def test_a_removed_name_is_free(root: Path, mounted: Mounted, kept: Kept) -> None:
    shutil.rmtree(root / "references")
    (root / "references").mkdir()
    (root / "references/own.md").write_text("mine")
    assert kept(mounted) == {"references": None, "references/own.md": b"mine"}
    shutil.rmtree(root / "references")
    assert not (root / "references").exists()


def test_nothing_can_be_made_in_a_removed_directory(root: Path, mounted: Mounted, kept: Kept) -> None:
    script = "cd references/deep && rm -rf ../../references && ! touch new && ! mkdir new && ! ln -s nowhere new"
    subprocess.run(script, shell=True, cwd=root, check=True)
    assert kept(mounted) == {}
    assert not (root / "references").exists()


def test_writing_to_what_is_answered_writes_the_file_that_it_is(root: Path, mounted: Mounted, kept: Kept) -> None:
    (root / "scripts/run.sh").write_text("echo mine\n")
    assert (root / "skills/review/scripts/run.sh").read_text() == "echo mine\n"
    assert "scripts" not in kept(mounted)
    os.link(root / "references/rules.md", root / "mine.md")
    assert kept(mounted)["mine.md"] == RULES


def test_a_real_name_replaces_what_is_answered(root: Path, mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    assert (root / "references/rules.md").exists()
    vfs.write_file("references/own.md", "own", parents=True)
    assert os.listdir(root / "references") == ["own.md"]
    assert not (root / "references/rules.md").exists()
    vfs.rmdir("references", recursive=True)
    assert (root / "references/rules.md").exists()
    (root / "mine").mkdir()
    (root / "mine").rename(root / "references")
    assert os.listdir(root / "references") == []


def test_what_comes_and_goes_with_seeding(root: Path, mounted: Mounted, connected: Connect) -> None:
    vfs = connected(mounted)
    assert not (root / "assets").exists()  # which the kernel remembers
    vfs.seed_skill("skills/third", OTHER_MD.replace("other", "third"), files={"assets/logo.svg": "<svg/>"})
    assert (root / "assets/logo.svg").read_text() == "<svg/>"
    fd = os.open(root / "assets", os.O_RDONLY | os.O_DIRECTORY)
    try:
        vfs.seed_skill("skills/other", OTHER_MD, files={"assets/logo.svg": "another"})
        assert not (root / "assets/logo.svg").exists()
        assert os.listdir(root / "assets") == []
        vfs.seed_remove("skills/third")
        assert (root / "assets/logo.svg").read_text() == "another"
        vfs.seed_remove("skills/other")
        assert not (root / "assets").exists()
        with refused(errno.ESTALE):
            os.stat(fd)
    finally:
        os.close(fd)


def test_each_hit_is_logged(root: Path, mounted: Mounted) -> None:
    (root / "references/rules.md").read_bytes()
    hit = r"DEBUG vfsd\.fuse\.trace\.loose: loose: /references/rules\.md is inode \d+"
    assert re.search(hit, mounted.log.read_text())


CHOICES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "none": ((), {"references", "scripts"}),
    "one": (("--loose-references", "scripts"), {"scripts"}),
    "two": (("--loose-references", "scripts,extras"), {"scripts", "extras"}),
    "off": (("--no-loose-references",), set()),
    "the last option wins": (("--no-loose-references", "--loose-references", "extras"), {"extras"}),
    "the last option turns it off": (("--loose-references", "extras", "--no-loose-references"), set()),
}


@pytest.mark.parametrize(("options", "answered"), CHOICES.values(), ids=CHOICES)
def test_which_names_are_answered_can_be_chosen(
    mount: MountFactory, redis_server: RedisServer, skill: Path, options: tuple[str, ...], answered: set[str]
) -> None:
    (skill / "extras").mkdir()
    (skill / "extras/more.md").touch()
    root = mount(redis_server.url, "--skill", os.fspath(skill), *options).path
    assert {name for name in os.listdir(root / "skills/review") if (root / name).exists()} == answered


@pytest.mark.parametrize("names", ["references,", "a/b", "..", "x" * 256])
def test_what_is_no_name_of_a_directory_is_refused(mount: MountFactory, redis_server: RedisServer, names: str) -> None:
    mounted = mount(redis_server.url, start=False)
    command = ["mount", os.fspath(mounted.path), "--scope", mounted.scope, "--loose-references", names]
    assert "expected names of directories" in failure(mounted.vfsd(*command), 2)


def test_it_needs_skills(mount: MountFactory, redis_server: RedisServer) -> None:
    assert not (mount(redis_server.url).path / "references").exists()


def test_a_file_seeded_outside_a_skill_is_no_skill(mount: MountFactory, redis_server: RedisServer, skill: Path) -> None:
    mounted = mount(redis_server.url, "--seed", f"{skill}:elsewhere/review")
    assert (mounted.path / "elsewhere/review/references/rules.md").exists()
    assert not (mounted.path / "references").exists()


def test_on_a_read_only_mount(mount: MountFactory, redis_server: RedisServer, skills: tuple[str, ...]) -> None:
    mounted = mount(redis_server.url, *skills)
    mounted.stop()
    mounted.start("--read-only")
    assert (mounted.path / "references/rules.md").read_bytes() == RULES
    with refused(errno.EROFS):
        (mounted.path / "references/new").touch()


def test_extended_attributes(mount: MountFactory, redis_server: RedisServer, skills: tuple[str, ...]) -> None:
    root = mount(redis_server.url, *skills, "--xattr").path
    assert os.listxattr(root / "references") == []
    with refused(errno.ENODATA):
        os.getxattr(root / "references", "user.key")
    with refused(errno.ENODATA):
        os.removexattr(root / "references", "user.key")
    assert os.listdir(root) == ["skills"]
    os.setxattr(root / "references", "user.key", b"value")
    assert os.listxattr(root / "references") == ["user.key"]
    assert os.listdir(root / "references") == []


def test_the_kernel_and_the_daemon_count_alike(root: Path, mounted: Mounted, kept: Kept) -> None:
    """A wrong count appears in the log, or keeps inodes that nobody can reach."""
    for _ in range(20):
        subprocess.run(["find", root / "references", root / "scripts", "-ls"], check=True, capture_output=True)
        (root / "references/deep/new").touch()
        subprocess.run(["rm", "-r", root / "references"], check=True)
        Path("/proc/sys/vm/drop_caches").write_text("2")
    assert (root / "scripts/run.sh").read_bytes() == SCRIPT
    wait_until(lambda: kept(mounted) == {}, "the store to be empty")


READERS, ROUNDS = 4, 60


def test_some_read_while_others_make_it_real_and_unmake_it(root: Path, mounted: Mounted, connected: Connect) -> None:
    """A reader sees the complete file or none, whatever is at the root. Nothing hangs and nothing is left over."""
    vfs = connected(mounted)

    def read(_number: int) -> int:
        found = 0
        for _ in range(ROUNDS):
            with suppress(OSError):
                assert (root / "references/rules.md").read_bytes() == RULES
                found += 1
            with suppress(OSError):
                assert set(os.listdir(root / "references/deep")) <= {"only.md", "other.md", "own"}
        return found

    def make() -> None:
        for round_ in range(ROUNDS):
            with suppress(OSError):
                (root / "references/deep/own").touch()
            subprocess.run(["rm", "-rf", root / "references"], check=False, capture_output=True)
            if not round_ % 10:
                vfs.seed_skill("skills/other", OTHER_MD, files={"references/deep/other.md": str(round_)})

    with ThreadPoolExecutor(READERS + 1) as pool:
        making = pool.submit(make)
        found = list(pool.map(read, range(READERS)))
        making.result()
    assert sum(found)
    subprocess.run(["rm", "-rf", root / "references"], check=False, capture_output=True)
    vfs.seed_file("elsewhere", "ends all removals")
    assert (root / "references/rules.md").read_bytes() == RULES
