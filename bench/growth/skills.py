"""Skills, stored or seeded, and what is done beside them."""

import subprocess
import sys
from pathlib import Path

from bench.candidates import Vfsd
from bench.growth.base import RUNS, UNITS, Place, Row, Run, each, renaming
from bench.process import BenchError

_SKILL = "---\nname: {0}\ndescription: a skill\n---\nText.\n"
_SEED = f"""
import sys
from vfsd import connect
with connect(sys.argv[1]) as vfs:
    for number in range(int(sys.argv[2])):
        vfs.seed_skill(f"skills/s{{number}}", {_SKILL!r}.format(f"s{{number}}"))
"""


def _make_skill(skills: Path, name: str) -> None:
    (skills / name).mkdir()
    (skills / name / "SKILL.md").write_text(_SKILL.format(name))


def _stored_skills(vfsd: Vfsd, size: int) -> Path:
    skills = vfsd.mountpoint / "skills"
    skills.mkdir()
    for number in range(size):
        _make_skill(skills, f"s{number}")
    return skills


def _making_skills(place: Place, size: int) -> Run:
    skills = _stored_skills(place.vfsd, size)
    return each(lambda number: _make_skill(skills, f"new{number}"), size)


def _renaming_beside_stored(place: Place, size: int) -> Run:
    directory = _stored_skills(place.vfsd, size) / "directory"
    directory.mkdir()
    return renaming(directory)


def _seed_skills(vfsd: Vfsd, size: int) -> None:
    command = [sys.executable, "-c", _SEED, str(vfsd.mountpoint), str(size)]
    done = subprocess.run(command, env=vfsd.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"cannot seed skills: {done.stderr.strip().splitlines()[-1]}")


def _renaming_beside_seeded(place: Place, size: int) -> Run:
    _seed_skills(place.vfsd, size)
    directory = place.vfsd.mountpoint / "directory"
    directory.mkdir()
    return renaming(directory)


def _missing_at_the_root(place: Place, size: int) -> Run:
    _seed_skills(place.vfsd, size)
    return each(lambda number: (place.vfsd.mountpoint / f"missing{number}").exists(), RUNS * UNITS)


SKILLS = (
    Row("make a skill beside SIZE stored skills", "µs for each skill", 200, _making_skills),
    Row("rename a directory beside SIZE stored skills", "µs for each rename", 200, _renaming_beside_stored),
    Row("rename a directory beside SIZE seeded skills", "µs for each rename", 200, _renaming_beside_seeded),
    Row("a name that is missing at the root, SIZE seeded skills", "µs for each name", 200, _missing_at_the_root),
)
