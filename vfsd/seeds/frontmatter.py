"""Parsing the front matter of a SKILL.md, which decides whether a skill can be seeded.

Only this module reads YAML. It imports the parser only when there is something to parse. It must turn every exception
of the parser into an FsError, because the text comes from somebody unknown. What the text may contain is limited before
values are made of it, so no version of the parser needs much time or memory.
"""

import errno
from collections.abc import Iterable
from typing import Any, NamedTuple

from vfsd.errors import FsError
from vfsd.tree.draft import NAME_MAX

SKILL = b"SKILL.md"
"""The name of the file that makes its directory a skill."""

_DELIMITER = b"---"
_HEAD_MAX = 16_384
"""Most bytes between the delimiters. Parsing takes time of the daemon; usual front matter has a few hundred bytes."""

_EVENTS_MAX = 2_000
"""Most values, and begins and ends of lists and objects. Usual front matter has a few dozen."""
_DEPTH_MAX = 32
"""Most lists and objects inside each other."""
_MERGE = "<<"
"""The key that merges another object into its own. With aliases, a short text can merge without end."""

_VALUE_ERRORS = (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError)
"""What the parser raises in addition to its own errors: for values that contradict their tags, and for deep nesting."""


class FrontMatter(NamedTuple):
    """Name and description of a skill."""

    name: str
    description: str


def front_matter(skill_md: bytes) -> FrontMatter:
    """Return what the front matter of *skill_md* says. Errors: EINVAL, with what is wrong with it."""
    values = _parsed(_head(skill_md))
    if not isinstance(values, dict):
        raise _invalid("its front matter is no list of keys and values: it needs 'name: …' and 'description: …'")
    return FrontMatter(_directory_name(_text(values, "name")), _text(values, "description"))


def _head(skill_md: bytes) -> bytes:
    """Return what is between the first two lines of three dashes."""
    seen = skill_md[: 2 * _HEAD_MAX]  # what follows may be large, and is not looked at
    first, *lines = seen.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if first.rstrip() != _DELIMITER:
        raise _invalid("it has no front matter: the first line must be ---, then 'name: …', 'description: …', then ---")
    for number, line in enumerate(lines):
        if line.rstrip() == _DELIMITER:
            head = b"\n".join(lines[:number])
            if len(head) > _HEAD_MAX:
                raise _too_long()
            return head
    if len(seen) < len(skill_md):
        raise _too_long()
    raise _invalid("its front matter has no end: a line --- after 'name: …' and 'description: …' is missing")


def _too_long() -> FsError:
    return _invalid(f"its front matter has more than {_HEAD_MAX} bytes")


def _parsed(head: bytes) -> Any:
    import yaml  # noqa: PLC0415 (a mount without skills does not need it)

    try:
        text = head.decode()
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except UnicodeDecodeError:
        raise _invalid("its front matter is no UTF-8") from None
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 2}" if error.problem_mark else ""
        raise _invalid(f"its front matter is no YAML: {error.problem or error.context}{where}") from None
    except (yaml.YAMLError, *_VALUE_ERRORS) as error:
        raise _invalid(f"its front matter is no YAML: {' '.join(str(error).split())[:200]}") from None


def _check_events(events: Iterable[Any]) -> None:
    """Refuse text that is small and becomes large. The parser yields *events* as it reads, and makes no value yet."""
    depth = 0
    for number, event in enumerate(events):
        kind = type(event).__name__
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if number > _EVENTS_MAX or depth > _DEPTH_MAX:
            raise _invalid("its front matter has too many values, or nests them too deep")
        if kind == "AliasEvent":
            raise _invalid("its front matter has an alias (*): write the value again instead")
        if kind == "ScalarEvent" and (event.value == _MERGE or str(event.tag).endswith(":merge")):
            raise _invalid("its front matter merges objects (<<): write the values instead")


def _text(values: dict[Any, Any], key: str) -> str:
    value = values.get(key)
    if value is None:
        raise _invalid(f"its front matter lacks the {key}: add a line '{key}: …'")
    if not isinstance(value, str) or not value.strip():
        raise _invalid(f"the {key} in its front matter must be text: put it in quotes")
    return value.strip()


def _directory_name(name: str) -> str:
    """Return *name* if it can be the name of a directory."""
    if name in {".", ".."} or "/" in name or not name.isprintable() or len(name.encode()) > NAME_MAX:
        raise _invalid(f"the name in its front matter, {name[:NAME_MAX]!r}, cannot be a directory's")
    return name


def _invalid(why: str) -> FsError:
    return FsError(errno.EINVAL, f"SKILL.md: {why}")
