"""Which directories' times a planned change moves, without a mount or a store."""

import random
import stat
from collections.abc import Callable, Iterable
from typing import TypeAlias

import pytest

from tests.tree.planned_tree import DIRECTORY, FILE, GID, UID, PlannedTree, content_of
from tests.tree.rebuild import directories_with
from vfsd.config import DirectoryMtime
from vfsd.errors import FsError
from vfsd.scope.hooks import Effects, NoKernelCache
from vfsd.seeds.directory_mtime import DirectoryTimes
from vfsd.seeds.frontmatter import SKILL
from vfsd.tree.change import ROOT, Change, PutInode
from vfsd.tree.plan_names import RENAME_EXCHANGE, EntryKey, NewInode
from vfsd.tree.plan_subtree import FileContent, NewEntry, plan_create_path, plan_remove
from vfsd.tree.tree import MILLISECOND

WALKS, STEPS = 8, 400


def _stored(_ino: int) -> bool:
    return True


class Timed(PlannedTree):
    """A planned tree in which every change gets the additions that a mount would make."""

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
        """Make a path of directories that ends in a file, in one change."""
        modes = [DIRECTORY] * (len(names) - 1) + [FILE]
        entries = [
            NewEntry(name, self.tree.allocate(), NewInode(mode, UID, GID))
            for name, mode in zip(names, modes, strict=True)
        ]
        self._take(plan_create_path(self.tree, parent, entries, FileContent.of(b"text"), self._tick()))
        return [entry.ino for entry in entries]

    def remove(self, *keys: tuple[int, bytes]) -> None:
        self._take(plan_remove(self.tree, [EntryKey(*key) for key in keys], self._tick()))

    def look(self, *inos: int) -> None:
        """Record that the times of *inos*, or of all inodes, were seen."""
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
        """Return the directories outside skills whose times the last change set."""
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
    planned = Stocked()
    call(planned)
    assert planned.moved() >= planned.up
    assert all(planned[ino].ctime_ns == planned.now for ino in planned.up)


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
    planned = Stocked()
    call(planned)
    assert planned.moved_by_name() == set(expected)


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
    planned = Stocked()
    call(planned)
    assert planned.moved() >= {planned.notes, planned.plans, ROOT}


def test_a_skill_that_leaves_moves_all_above() -> None:
    planned = Stocked()
    planned.rename((planned.skills, b"review"), (planned.plans, b"review"))
    planned.look()
    planned.rename((planned.plans, b"review"), (ROOT, b"review"))
    assert planned.moved() == {planned.plans, ROOT}
    planned.rename((ROOT, b"review"), (planned.notes, b"review"))
    planned.look()
    planned.rename((planned.notes, b"review"), (planned.skills, b"review"))
    assert planned.moved() == {planned.notes, planned.plans, planned.skills, ROOT}


def test_a_new_directory_in_the_way_of_the_walk_moves_what_is_above_it() -> None:
    planned = Stocked()
    planned.rename((ROOT, b"skills"), (planned.plans, b"skills"))
    planned.look()
    planned.write(planned.guide, 0, b"x")
    assert planned.moved() == {planned.review, planned.skills, planned.plans, ROOT}


def test_a_hard_link_moves_the_skills_of_all_its_names() -> None:
    planned = Stocked()
    other = planned.mkdir(b"other", planned.plans)
    planned.create(SKILL, other)
    planned.link(planned.guide, b"linked", other)
    planned.look()
    planned.write(planned.guide, 0, b"x")
    assert planned.moved() == {*planned.up, other, planned.plans}
    planned.unlink(b"guide.md", planned.references)
    planned.look()
    planned.write(planned.guide, 0, b"y")
    assert planned.moved() == {other, planned.plans, ROOT}


def test_a_file_without_a_name_moves_nothing() -> None:
    planned = Stocked()
    planned.open(planned.guide)
    planned.unlink(b"guide.md", planned.references)
    planned.look()
    planned.write(planned.guide, 0, b"x")
    assert planned.moved() == set()


def test_a_time_that_nobody_has_seen_does_not_move() -> None:
    planned = Stocked()
    planned.write(planned.guide, 0, b"x")
    assert set(planned.added) == planned.up
    for _ in range(100):
        planned.write(planned.guide, 0, b"y")
        assert planned.added == []
    planned.look(planned.skills)
    planned.write(planned.guide, 0, b"z")
    assert planned.added == [planned.skills]


def test_posix_moves_nothing_more_and_all_moves_everything_above() -> None:
    for kind, expected in ((DirectoryMtime.POSIX, set[str]()), (DirectoryMtime.ALL, {"notes", "plans", "root"})):
        planned = Stocked(kind)
        file = planned.create(b"f", planned.notes)
        planned.look()
        planned.write(file, 0, b"x")
        assert planned.moved_by_name() == expected


# --- at random


class RandomTimes:
    """Random changes, and a reader that caches the content of directories by their times."""

    def __init__(self, chance: random.Random, kind: DirectoryMtime) -> None:
        self.chance = chance
        self.planned = Timed(kind)
        self.kind = kind
        self.cache: dict[int, tuple[int, object]] = {}

    def step(self) -> None:
        directories, files = self.directories(), self.files()
        keys = [(ino, name) for ino in directories for name in self.planned.listing(ino)]
        parent, name = self.chance.choice(directories), self.chance.choice((b"a", b"b", b"c", SKILL))
        moves: list[Callable[[], object]] = [
            *[lambda: self.planned.create(name, parent), lambda: self.planned.mkdir(name, parent)] * 2,
            lambda: self.planned.branch(parent, name, b"d", self.chance.choice((b"e", SKILL))),
        ]
        if files:
            file = self.chance.choice(files)
            moves += [lambda: self.planned.write(file, self.chance.randrange(3), b"%d" % self.chance.randrange(99))] * 3
            moves += [lambda: self.planned.setattr(file, size=self.chance.randrange(4))]
            moves += [lambda: self.planned.link(file, name, parent), lambda: self.planned.setattr(file, mode=0o600)]
        if keys:
            key, other = self.chance.choice(keys), self.chance.choice(keys)
            moves += [lambda: self.planned.unlink(key[1], key[0]), lambda: self.planned.rmdir(key[1], key[0])]
            moves += [lambda: self.planned.rename(key, (parent, name))] * 2
            moves += [lambda: self.planned.rename(key, other, RENAME_EXCHANGE)]
        try:
            self.chance.choice(moves)()
        except FsError:
            return

    def directories(self) -> list[int]:
        return [ino for ino, inode in self.planned.tree.inodes.items() if inode.directory is not None]

    def files(self) -> list[int]:
        return [ino for ino, inode in self.planned.tree.inodes.items() if inode.directory is None]

    def look(self) -> None:
        """Read a few directories, or trust what is cached of them; that must never be out of date."""
        directories = self.directories()
        for ino in self.chance.sample(directories, min(2, len(directories))):
            mtime_ms, content = self.planned[ino].mtime_ns // MILLISECOND, self.content(ino)
            if ino in self.cache and self.cache[ino][0] == mtime_ms:
                assert self.cache[ino][1] == content
            self.planned.look(ino)
            self.cache[ino] = (mtime_ms, content)

    def content(self, ino: int) -> object:
        """Return what a cache of directory *ino* may rely on: all below it, if the rule says so, else its names."""
        if self.kind is DirectoryMtime.ALL:
            return self.everything(ino)
        names = sorted(self.planned.listing(ino).items())
        if self.kind is DirectoryMtime.POSIX:
            return names
        return names, list(self.skills(ino))

    def everything(self, ino: int) -> object:
        if self.planned.tree.inode(ino).directory is None:
            return content_of(self.planned.tree, ino)
        return {name: (child, self.everything(child)) for name, child in self.planned.listing(ino).items()}

    def skills(self, ino: int) -> Iterable[object]:
        """Yield all below each skill at or below *ino*."""
        listing = self.planned.listing(ino)
        if SKILL in listing:
            yield self.everything(ino)
            return
        for name, child in sorted(listing.items()):
            if stat.S_ISDIR(self.planned[child].mode):
                for skill in self.skills(child):
                    yield name, skill


@pytest.mark.parametrize("kind", DirectoryMtime)
def test_a_cache_by_directory_times_is_never_wrong(kind: DirectoryMtime) -> None:
    for _ in range(WALKS):
        seed = random.randrange(2**32)
        print("seed", seed)
        walk = RandomTimes(random.Random(seed), kind)
        for _ in range(STEPS):
            shown = {ino for ino, inode in walk.planned.tree.inodes.items() if inode.shown}
            walk.planned.added = []
            walk.step()
            assert set(walk.planned.added) <= shown
            walk.look()
