"""What the head of a SKILL.md says: the one place that reads YAML, and that decides which skills are fit to be shown.

It is imported by who seeds, and imports the YAML parser only when there is something to parse. It must never let a
parser's own exception past: the text is a stranger's.
"""

import errno
from typing import Any, NamedTuple

from vfsd.errors import FsError
from vfsd.tree.draft import NAME_MAX

SKILL = b"SKILL.md"
"""The name of the file that makes its directory a skill."""

_FENCE = b"---"
_MOST = 16_384
"""Most bytes between the fences: parsing takes the daemon's time, and a head is some hundred bytes long."""

_OF_CONSTRUCTORS = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)
"""What the parser raises besides its own errors: for values that contradict their tags, and for deep nesting."""


class FrontMatter(NamedTuple):
    """Name and description of a skill."""

    name: str
    description: str


def front_matter(skill_md: bytes) -> FrontMatter:
    """Return what the front matter of *skill_md* says. Errors: EINVAL, with what is missing."""
    said = _parsed(_head(skill_md))
    if not isinstance(said, dict):
        raise _unfit("its front matter is no list of keys and values: it needs 'name: …' and 'description: …'")
    return FrontMatter(_file_name(_text(said, "name")), _text(said, "description"))


def _head(skill_md: bytes) -> bytes:
    """Return what stands between the first two lines of three dashes."""
    first, *lines = skill_md.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if first.rstrip() != _FENCE:
        raise _unfit("it has no front matter: the first line must be ---, then 'name: …', 'description: …', then ---")
    for number, line in enumerate(lines):
        if line.rstrip() == _FENCE:
            head = b"\n".join(lines[:number])
            if len(head) > _MOST:
                raise _unfit(f"its front matter has {len(head)} bytes, more than {_MOST}")
            return head
    raise _unfit("its front matter has no end: a line --- after 'name: …' and 'description: …' is missing")


def _parsed(head: bytes) -> Any:
    import yaml  # noqa: PLC0415 (a mount without skills need not pay for it)

    try:
        return yaml.safe_load(head.decode())
    except UnicodeDecodeError:
        raise _unfit("its front matter is no UTF-8") from None
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise _unfit(f"its front matter is no YAML: {error.problem or error.context}{where}") from None
    except (yaml.YAMLError, *_OF_CONSTRUCTORS) as error:
        raise _unfit(f"its front matter is no YAML: {' '.join(str(error).split())[:200]}") from None


def _text(said: dict[Any, Any], key: str) -> str:
    value = said.get(key)
    if value is None:
        raise _unfit(f"its front matter lacks the {key}: add a line '{key}: …'")
    if not isinstance(value, str) or not value.strip():
        raise _unfit(f"the {key} in its front matter must be text: put it in quotes")
    return value.strip()


def _file_name(name: str) -> str:
    """Return *name* if a directory can be called so."""
    if name in {".", ".."} or "/" in name or not name.isprintable() or len(name.encode()) > NAME_MAX:
        raise _unfit(f"the name in its front matter, {name[:NAME_MAX]!r}, cannot be a directory's")
    return name


def _unfit(why: str) -> FsError:
    return FsError(errno.EINVAL, f"SKILL.md: {why}")
