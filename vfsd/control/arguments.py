"""The arguments of a request, checked. Only this module refuses an argument that is missing or has a wrong type."""

import base64
import errno
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from vfsd.control.protocol import index_of, path_bytes
from vfsd.errors import FsError

T = TypeVar("T")

_MOST: Final = 2**63 - 1
_REQUIRED: Final = object()


class Arguments:
    """The arguments of a request, by name. Every method raises FsError (EINVAL), which names the argument.

    An argument that is null counts as missing. An argument without a default is required. *contents* are the long
    strings of base64 in *values*, decoded; *values* has placeholders for them. *no_room* is why memory has
    none of them.
    """

    def __init__(
        self, values: dict[str, Any], contents: Sequence[bytes | None] = (), no_room: FsError | None = None
    ) -> None:
        self._values = values
        self._contents = contents
        self._no_room = no_room

    def path(self, name: str = "path", default: Any = _REQUIRED) -> bytes:
        """Return a path as bytes."""
        return _path(name, self.text(name, default))

    def text(self, name: str, default: Any = _REQUIRED) -> str:
        """Return a string. Errors: ENAMETOOLONG if it was so long that it was taken for content."""
        text = self._typed(name, str, "a string", default)
        if self._contents and index_of(text) is not None:
            raise FsError(errno.ENAMETOOLONG)
        return text

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return true or false."""
        return self._typed(name, bool, "true or false", default)

    def number(self, name: str, default: Any = _REQUIRED, *, least: int = 0, most: int = _MOST) -> int:
        """Return an integer from *least* to *most*."""
        number = self._typed(name, int, "an integer", default)
        if isinstance(number, bool) or not least <= number <= most:
            raise _invalid(name, f"an integer from {least} to {most}")
        return number

    def optional_number(self, name: str, *, least: int = 0, most: int = _MOST) -> int | None:
        """Return an integer from *least* to *most*, or None if it is missing."""
        return None if self._values.get(name) is None else self.number(name, least=least, most=most)

    def data(self, name: str = "data") -> bytes:
        """Return content, which is sent as base64."""
        return self._content(name, self._typed(name, str, "a string", _REQUIRED))

    def contents(self, name: str) -> dict[bytes, bytes]:
        """Return content by relative path, which is sent as an object from path to base64."""
        contents = self._typed(name, dict, "an object from path to base64", _REQUIRED)
        return {_path(name, path): self._content(f"{name}[{path!r}]", content) for path, content in contents.items()}

    def numbers(self, name: str, *, most: int) -> dict[bytes, int]:
        """Return integers from 0 to *most* by relative path, which are sent as an object. A missing object is empty."""
        numbers = self._typed(name, dict, "an object from path to integer", {})
        return {_path(name, path): Arguments(numbers).number(path, most=most) for path in numbers}

    def _content(self, name: str, text: Any) -> bytes:
        if not isinstance(text, str):
            raise _invalid(name, "a string of base64")
        index = index_of(text)
        if index is not None and self._no_room is not None:
            raise self._no_room
        try:
            content = base64.b64decode(text, validate=True) if index is None else self._contents[index]
        except (ValueError, IndexError):
            content = None
        if content is None:
            raise _invalid(name, "base64 with padding (RFC 4648)")
        return content

    def _typed(self, name: str, kind: type[T], expected: str, default: Any) -> T:
        value = self._values.get(name)
        if value is None:
            value = default
        if value is _REQUIRED:
            raise FsError(errno.EINVAL, f"the argument {name!r} is missing")
        if not isinstance(value, kind):
            raise _invalid(name, expected)
        return value


def _path(name: str, text: str) -> bytes:
    try:
        return path_bytes(text)
    except UnicodeEncodeError:
        raise _invalid(name, "text in which lone surrogates are from U+DC80 to U+DCFF") from None


def _invalid(name: str, expected: str) -> FsError:
    return FsError(errno.EINVAL, f"the argument {name!r} must be {expected}")
