"""Store URLs: which store a URL names, what it needs on this host, and how people may see it.

This is the only place that knows URL schemes. A new store is a package with a factory and one entry point in the group
``vfsd.stores``, named after its scheme; the stores of the project are in the table below, because reading entry points
costs more than a short command takes. It must never load a store that is not used, and never show a password.

Secrets are found in the text itself, not by parsing it as a URL: a password with a raw ``/``, ``?`` or ``#`` makes the
URL invalid, and must stay hidden all the same.
"""

import enum
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from vfsd.errors import UsageError
from vfsd.store.base import Store, StoreFactory, StoreOptions

DEFAULT_STORE = "redis://127.0.0.1:6379/0"
ENTRY_POINTS = "vfsd.stores"


class Kind(enum.Enum):
    """What a URL points at."""

    SERVER = enum.auto()
    SOCKET = enum.auto()
    FILE = enum.auto()
    PROCESS = enum.auto()
    """Nothing outside the process that opens it."""


class Scheme(NamedTuple):
    """A store of the project: the module that has its ``open_store``, and what its URLs point at."""

    module: str
    kind: Kind


SCHEMES = {
    "redis": Scheme("vfsd.store.redis.store", Kind.SERVER),
    "rediss": Scheme("vfsd.store.redis.store", Kind.SERVER),
    "redis+sentinel": Scheme("vfsd.store.redis.store", Kind.SERVER),
    "unix": Scheme("vfsd.store.redis.store", Kind.SOCKET),
    "sqlite": Scheme("vfsd.store.sqlite.store", Kind.FILE),
    "memory": Scheme("vfsd.store.memory", Kind.PROCESS),
}

_SECRET = ("password", "secret", "token")
_NO_AUTHORITY = tuple(f"{name}:" for name, scheme in SCHEMES.items() if scheme.kind in {Kind.FILE, Kind.PROCESS})
_WITHOUT_CREDENTIALS = (*_NO_AUTHORITY, "unix:///")
_MIXED = re.compile(r"://.*[?&]\w*(?:password|secret|token)=.*@", re.IGNORECASE | re.DOTALL)
"""An ``@`` in a setting, or a setting in a password: it is not known where the secret begins and ends."""
_HOST_AND_PORT = re.compile(r"[\w.-]+(?::\d{1,5})?", re.ASCII)
_USER_AND_PASSWORD = re.compile(r"([\w.~%+-]*:)[^/?#@]*", re.ASCII)
_SETTING = re.compile(r"\w+=", re.ASCII)
_FILE_NAMES = (".db", ".sqlite", ".sqlite3")
"""How the names of SQLite files end."""
_HIDDEN = "***"
_HINT = "write / ? # @ and % in a password as %2F %3F %23 %40 and %25"


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store that *url* names; it is not connected yet. Raises UsageError if no store serves the scheme."""
    name = urlsplit(url).scheme
    factory = _built_in(name) if name in SCHEMES else _plugin(name)
    if factory is None:
        raise UsageError(f"store {hidden(url)}: {_unknown(url, name)}")
    return factory(url, options)


def _unknown(url: str, scheme: str) -> str:
    """Return why no store serves *url*, and what may be meant."""
    if not scheme and not url.startswith(("/", ".")) and (url.endswith(_FILE_NAMES) or Path(url).is_file()):
        return f"it has no scheme; did you mean sqlite:{url}?"
    if _HOST_AND_PORT.fullmatch(url):
        return f"it has no scheme; did you mean redis://{url}/0?"
    if url.startswith("/"):
        return f"it has no scheme; did you mean sqlite:{url}, or unix://{url} for the socket of a Redis?"
    if url.startswith("."):
        return f"it has no scheme; did you mean sqlite:{url}?"
    return f"unknown scheme {scheme!r}; this vfsd knows {', '.join(sorted(SCHEMES))}"


def _built_in(name: str) -> StoreFactory:
    factory: StoreFactory = import_module(SCHEMES[name].module).open_store
    return factory


def _plugin(name: str) -> StoreFactory | None:
    """Return the factory that another package offers for the scheme *name*, if one does."""
    from importlib import metadata  # noqa: PLC0415 (slow to import, and rarely needed)

    entry_point = next(iter(metadata.entry_points(group=ENTRY_POINTS, name=name)), None)
    if entry_point is None:
        return None
    factory: StoreFactory = entry_point.load()
    return factory


# --- what a URL means on this host


def _kind(url: str) -> Kind:
    """Return what *url* points at. A store of another package counts as a server: its URL is passed on unchanged."""
    scheme = SCHEMES.get(url.partition(":")[0].lower())
    return Kind.SERVER if scheme is None else scheme.kind


def local_path(url: str) -> str | None:
    """Return the path of the file or socket that *url* points at, or None if it points at neither."""
    kind = _kind(url)
    if kind is Kind.FILE:
        return url.partition(":")[2]
    return urlsplit(url).path if kind is Kind.SOCKET else None


def with_absolute_path(url: str, absolute: Callable[[str], str]) -> str:
    """Return *url* with a relative file path made *absolute*: a daemon has another working directory."""
    scheme, _, path = url.partition(":")
    if _kind(url) is Kind.FILE and path and not path.startswith("/"):
        return f"{scheme}:{absolute(path)}"
    return url


def can_wait_for_replicas(url: str) -> bool:
    """Whether fsync can wait for more than the commit: only a server has replicas and its own disk."""
    return _kind(url) in {Kind.SERVER, Kind.SOCKET}


def has_password(url: str) -> bool:
    """Whether *url* itself has a password for the store."""
    parts = urlsplit(url)
    return parts.password is not None or any(setting.startswith("password=") for setting in parts.query.split("&"))


def takes_password(url: str) -> bool:
    """Whether the store of *url* can ask for a password."""
    return _kind(url) in {Kind.SERVER, Kind.SOCKET}


def with_password(url: str, password: str) -> str:
    """Return *url*, which has no password, with *password* after its user name."""
    parts = urlsplit(url)
    user, _, address = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user}:{quote(password, safe='', errors='surrogateescape')}@{address}").geturl()


# --- what people may see of a URL


def hidden(url: str) -> str:
    """Return *url* with every password replaced by ``***``. It accepts any string."""
    if url.startswith(_NO_AUTHORITY):
        return url
    if _MIXED.search(url):
        return f"{url.partition(':')[0]}://{_HIDDEN}"
    address, mark, query = _without_credentials(url).partition("?")
    return address + mark + "&".join(map(_without_secret, query.split("&")))


def _without_credentials(url: str) -> str:
    """Hide everything between ``://`` and the last ``@``. The user name in a plain ``USER:PASSWORD`` stays."""
    if url.startswith(_WITHOUT_CREDENTIALS) or "@" not in url:
        return url
    before, _, address = url.rpartition("@")
    scheme, mark, credentials = before.rpartition("://") if before.count("://") == 1 else ("", "", before)
    plain = _USER_AND_PASSWORD.fullmatch(credentials) if mark else None
    return f"{scheme}{mark}{plain[1] if plain else ''}{_HIDDEN}@{address}"


def _without_secret(setting: str) -> str:
    """Hide the value of a secret. Hide text without ``=`` too: it may be the end of a password with a raw ``&``."""
    key, equals, _ = setting.partition("=")
    if setting and not equals:
        return _HIDDEN
    return f"{key}={_HIDDEN}" if key.lower().endswith(_SECRET) else setting


def checked(url: str) -> str:
    """Return *url* if its credentials are where a URL has them. Raises UsageError, which shows none of them.

    Without this check the start of a password with a raw ``/``, ``?`` or ``#`` is taken for a host name.
    """
    if url.startswith(_WITHOUT_CREDENTIALS):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:  # its text quotes the URL
        raise UsageError(f"store {hidden(url)}: not a URL; {_HINT}") from None
    query = "" if _SETTING.match(parts.query) else parts.query
    if "://" in url and "@" in parts.path + query + parts.fragment:
        raise UsageError(f"store {hidden(url)}: not a URL; {_HINT}")
    return url
