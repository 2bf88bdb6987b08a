"""Which directories' times a planned change moves, without a mount or a store."""

import random
import stat
from collections.abc import Callable, Iterable
from typing import TypeAlias

import pytest

from tests.tree.rebuild import directories_with
from tests.tree.scene import DIRECTORY, FILE, GID, UID, Scene, whole
from vfsd.config import DirectoryMtime
from vfsd.errors import FsError
from vfsd.scope.hooks import Effects, NoKernelCache
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.frontmatter import SKILL
from vfsd.tree.change import ROOT, Change, PutInode
from vfsd.tree.inode import MILLISECOND
from vfsd.tree.plan_names import RENAME_EXCHANGE, EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path, plan_remove

WALKS, STEPS = 8, 400


def _stored(_ino: int) -> bool:
    return True


class Timed(Scene):
    """A scene in which every change is extended as a mount would extend it."""

    def __init__(self, kind: DirectoryMtime = DirectoryMtime.SKILLS) -> None:
        super().__init__()
        self.hook = (
            None if kind is DirectoryMtime.POSIX else DirectoryTimes(self.tree, kind, NoKernelCache(), _stored, ())
        )
        self.added: list[int] = []
        """The directories that the last change moved beyond what it would have moved anyway."""

    def _take(self, change: Change) -> Change:
        if self.hook is None:
            return super()._take(change)
        added = self.hook.additions(change, self.now)
        self.added = [op.ino for op in added if isinstance(op, PutInode)]
        whole_change = Change((*added, *change.ops), change.grows)
        effects = Effects(whole_change, whole_change)
        self.hook.applying(effects)
        taken = super()._take(whole_change)
        self.hook.applied(effects, ())
        assert self.hook.skills == directories_with(self.tree, SKILL)
        return taken

    def branch(self, parent: int, *names: bytes) -> list[int]:
        """Make directories, the last one a file, each in the one before, in one change."""
        modes = [DIRECTORY] * (len(names) - 1) + [FILE]
        sprouts = [
            NewEntry(name, self.tree.allocate(), NewInode(mode, UID, GID))
            for name, mode in zip(names, modes, strict=True)
        ]
        self._take(plan_create_path(self.tree, parent, sprouts, FileContent.of(b"text"), self._tick()))
        return [sprout.ino for sprout in sprouts]

    def remove(self, *keys: tuple[int, bytes]) -> None:
        self._take(plan_remove(self.tree, [EntryKey(*key) for key in keys], self._tick()))

    def look(self, *inos: int) -> None:
        """See the times of *inos*, or of all there are."""
        for ino in inos or tuple(self.tree.inodes):
            self.tree.inode(ino).shown = True


class Stocked(Timed):
    """``/skills/review/{SKILL.md,references/{deep/,guide.md}}`` and ``/plans/{notes/,todo.md}``, all of it seen."""

    def __init__(self, kind: DirectoryMtime = DirectoryMtime.SKILLS) -> None:
        super().__init__(kind)
        self.skills = self.mkdir(b"skills")
        self.review = self.mkdir(b"review", self.skills)
        self.skill = self.create(SKILL, self.review)
        self.references = self.mkdir(b"references", self.review)
        self.deep = self.mkdir(b"deep", self.references)
        self.guide = self.create(b"guide.md", self.references)
        self.plans = self.mkdir(b"plans")
        self.notes = self.mkdir(b"notes", self.plans)
        self.todo = self.create(b"todo.md", self.plans)
        self.look()

    @property
    def up(self) -> set[int]:
        """The skill and the directories above it."""
        return {self.review, self.skills, ROOT}

    def moved(self) -> set[int]:
        """Return the directories that the last change moved."""
        directories = {ino for ino, inode in self.tree.inodes.items() if inode.directory is not None}
        return {ino for ino in directories if self[ino].mtime_ns == self.now}

    def moved_by_name(self) -> set[str]:
        """Return what the last change moved of the directories that are no skill's."""
        names = {ROOT: "root", self.plans: "plans", self.notes: "notes"}
        return {names.get(ino, str(ino)) for ino in self.moved()}


Call: TypeAlias = Callable[[Stocked], object]

BELOW_A_SKILL: dict[str, Call] = {
    "write": lambda s: s.write(s.guide, 0, b"x"),
    "write to SKILL.md": lambda s: s.write(s.skill, 0, b"x"),
    "make longer": lambda s: s.setattr(s.guide, size=100_000),
    "empty": lambda s: s.setattr(s.guide, size=0),
    "create": lambda s: s.create(b"new", s.deep),
    "mkdir": lambda s: s.mkdir(b"new", s.deep),
    "link from elsewhere": lambda s: s.link(s.todo, b"new", s.deep),
    "unlink": lambda s: s.unlink(b"guide.md", s.references),
    "rmdir": lambda s: s.rmdir(b"deep", s.references),
    "rename": lambda s: s.rename((s.references, b"guide.md"), (s.deep, b"new")),
    "move in": lambda s: s.rename((s.plans, b"todo.md"), (s.deep, b"new")),
    "move out": lambda s: s.rename((s.references, b"guide.md"), (s.plans, b"new")),
    "exchange": lambda s: s.rename((s.references, b"guide.md"), (s.plans, b"todo.md"), RENAME_EXCHANGE),
    "move a directory": lambda s: s.rename((s.references, b"deep"), (s.review, b"new")),
    "a branch": lambda s: s.branch(s.deep, b"a", b"b", b"c"),
    "remove a branch": lambda s: s.remove((s.references, b"guide.md"), (s.references, b"deep")),
    "no longer a skill": lambda s: s.unlink(SKILL, s.review),
    "another SKILL.md": lambda s: s.rename((s.plans, b"todo.md"), (s.review, SKILL)),
}


@pytest.mark.parametrize("call", BELOW_A_SKILL.values(), ids=BELOW_A_SKILL)
def test_a_change_below_a_skill_moves_it_and_all_above(call: Call) -> None:
    scene = Stocked()
    call(scene)
    assert scene.moved() >= scene.up
    assert all(scene[ino].ctime_ns == scene.now for ino in scene.up)


ELSEWHERE: dict[str, tuple[Call, tuple[str, ...]]] = {
    "write": (lambda s: s.write(s.todo, 0, b"x"), ()),
    "create": (lambda s: s.create(b"new", s.notes), ("notes",)),
    "unlink": (lambda s: s.unlink(b"todo.md", s.plans), ("plans",)),
    "rename": (lambda s: s.rename((s.plans, b"todo.md"), (s.notes, b"new")), ("plans", "notes")),
    "move a directory": (lambda s: s.rename((s.plans, b"notes"), (ROOT, b"new")), ("plans", "root")),
    "chmod below a skill": (lambda s: s.setattr(s.guide, mode=0o600), ()),
    "utimens below a skill": (lambda s: s.setattr(s.guide, mtime_ns=7), ()),
    "xattr below a skill": (lambda s: s.setxattr(s.guide, b"user.k", b"v"), ()),
}


@pytest.mark.parametrize(("call", "expected"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_elsewhere_and_for_all_but_content_posix_rules(call: Call, expected: tuple[str, ...]) -> None:
    scene = Stocked()
    call(scene)
    assert scene.moved_by_name() == set(expected)


BECOMES_A_SKILL: dict[str, Call] = {
    "create": lambda s: s.create(SKILL, s.notes),
    "link": lambda s: s.link(s.todo, SKILL, s.notes),
    "rename": lambda s: s.rename((s.plans, b"todo.md"), (s.notes, SKILL)),
    "a branch": lambda s: s.branch(s.notes, b"new", SKILL),
    "a deep branch": lambda s: s.branch(s.notes, b"a", b"b", SKILL),
    "a skill moves in": lambda s: s.rename((s.skills, b"review"), (s.notes, b"review")),
    "a directory of skills moves in": lambda s: s.rename((ROOT, b"skills"), (s.notes, b"skills")),
}


@pytest.mark.parametrize("call", BECOMES_A_SKILL.values(), ids=BECOMES_A_SKILL)
def test_a_skill_that_comes_moves_all_above(call: Call) -> None:
    scene = Stocked()
    call(scene)
    assert scene.moved() >= {scene.notes, scene.plans, ROOT}


def test_a_skill_that_leaves_moves_all_above() -> None:
    scene = Stocked()
    scene.rename((scene.skills, b"review"), (scene.plans, b"review"))
    scene.look()
    scene.rename((scene.plans, b"review"), (ROOT, b"review"))
    assert scene.moved() == {scene.plans, ROOT}
    scene.rename((ROOT, b"review"), (scene.notes, b"review"))
    scene.look()
    scene.rename((scene.notes, b"review"), (scene.skills, b"review"))
    assert scene.moved() == {scene.notes, scene.plans, scene.skills, ROOT}


def test_a_new_directory_in_the_way_of_the_walk_moves_what_is_above_it() -> None:
    scene = Stocked()
    scene.rename((ROOT, b"skills"), (scene.plans, b"skills"))
    scene.look()
    scene.write(scene.guide, 0, b"x")
    assert scene.moved() == {scene.review, scene.skills, scene.plans, ROOT}


def test_a_hard_link_moves_the_skills_of_all_its_names() -> None:
    scene = Stocked()
    other = scene.mkdir(b"other", scene.plans)
    scene.create(SKILL, other)
    scene.link(scene.guide, b"linked", other)
    scene.look()
    scene.write(scene.guide, 0, b"x")
    assert scene.moved() == {*scene.up, other, scene.plans}
    scene.unlink(b"guide.md", scene.references)
    scene.look()
    scene.write(scene.guide, 0, b"y")
    assert scene.moved() == {other, scene.plans, ROOT}


def test_a_file_without_a_name_moves_nothing() -> None:
    scene = Stocked()
    scene.open(scene.guide)
    scene.unlink(b"guide.md", scene.references)
    scene.look()
    scene.write(scene.guide, 0, b"x")
    assert scene.moved() == set()


def test_a_time_that_nobody_has_seen_does_not_move() -> None:
    scene = Stocked()
    scene.write(scene.guide, 0, b"x")
    assert set(scene.added) == scene.up
    for _ in range(100):
        scene.write(scene.guide, 0, b"y")
        assert scene.added == []
    scene.look(scene.skills)
    scene.write(scene.guide, 0, b"z")
    assert scene.added == [scene.skills]


def test_posix_moves_nothing_more_and_all_moves_everything_above() -> None:
    for kind, expected in ((DirectoryMtime.POSIX, set[str]()), (DirectoryMtime.ALL, {"notes", "plans", "root"})):
        scene = Stocked(kind)
        file = scene.create(b"f", scene.notes)
        scene.look()
        scene.write(file, 0, b"x")
        assert scene.moved_by_name() == expected


# --- at random


class Walk:
    """Random changes, and somebody who caches what directories hold by their times."""

    def __init__(self, chance: random.Random, kind: DirectoryMtime) -> None:
        self.chance = chance
        self.scene = Timed(kind)
        self.kind = kind
        self.cache: dict[int, tuple[int, object]] = {}

    def step(self) -> None:
        directories, files = self.directories(), self.files()
        keys = [(ino, name) for ino in directories for name in self.scene.listing(ino)]
        parent, name = self.chance.choice(directories), self.chance.choice((b"a", b"b", b"c", SKILL))
        moves: list[Callable[[], object]] = [
            *[lambda: self.scene.create(name, parent), lambda: self.scene.mkdir(name, parent)] * 2,
            lambda: self.scene.branch(parent, name, b"d", self.chance.choice((b"e", SKILL))),
        ]
        if files:
            file = self.chance.choice(files)
            moves += [lambda: self.scene.write(file, self.chance.randrange(3), b"%d" % self.chance.randrange(99))] * 3
            moves += [lambda: self.scene.setattr(file, size=self.chance.randrange(4))]
            moves += [lambda: self.scene.link(file, name, parent), lambda: self.scene.setattr(file, mode=0o600)]
        if keys:
            key, other = self.chance.choice(keys), self.chance.choice(keys)
            moves += [lambda: self.scene.unlink(key[1], key[0]), lambda: self.scene.rmdir(key[1], key[0])]
            moves += [lambda: self.scene.rename(key, (parent, name))] * 2
            moves += [lambda: self.scene.rename(key, other, RENAME_EXCHANGE)]
        try:
            self.chance.choice(moves)()
        except FsError:
            return

    def directories(self) -> list[int]:
        return [ino for ino, inode in self.scene.tree.inodes.items() if inode.directory is not None]

    def files(self) -> list[int]:
        return [ino for ino, inode in self.scene.tree.inodes.items() if inode.directory is None]

    def look(self) -> None:
        """Read a few directories, or trust what is cached of them; that must never be out of date."""
        directories = self.directories()
        for ino in self.chance.sample(directories, min(2, len(directories))):
            mtime_ms, content = self.scene[ino].mtime_ns // MILLISECOND, self.content(ino)
            if ino in self.cache and self.cache[ino][0] == mtime_ms:
                assert self.cache[ino][1] == content
            self.scene.look(ino)
            self.cache[ino] = (mtime_ms, content)

    def content(self, ino: int) -> object:
        """Return what a cache of directory *ino* may rely on: all below it, if the rule says so, else its names."""
        if self.kind is DirectoryMtime.ALL:
            return self.everything(ino)
        names = sorted(self.scene.listing(ino).items())
        if self.kind is DirectoryMtime.POSIX:
            return names
        return names, list(self.skills(ino))

    def everything(self, ino: int) -> object:
        if self.scene.tree.inode(ino).directory is None:
            return whole(self.scene.tree, ino)
        return {name: (child, self.everything(child)) for name, child in self.scene.listing(ino).items()}

    def skills(self, ino: int) -> Iterable[object]:
        """Yield all below each skill at or below *ino*."""
        listing = self.scene.listing(ino)
        if SKILL in listing:
            yield self.everything(ino)
            return
        for name, child in sorted(listing.items()):
            if stat.S_ISDIR(self.scene[child].mode):
                for skill in self.skills(child):
                    yield name, skill


@pytest.mark.parametrize("kind", DirectoryMtime)
def test_whoever_caches_by_directory_times_is_never_wrong(kind: DirectoryMtime) -> None:
    for _ in range(WALKS):
        seed = random.randrange(2**32)
        print("seed", seed)
        walk = Walk(random.Random(seed), kind)
        for _ in range(STEPS):
            shown = {ino for ino, inode in walk.scene.tree.inodes.items() if inode.shown}
            walk.scene.added = []
            walk.step()
            assert set(walk.scene.added) <= shown
            walk.look()
