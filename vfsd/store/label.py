"""Store URLs as people may see them. Imports no store, so that a command need not load one to show its URL.

What must not be shown is found in the text itself, never by parsing it as a URL: a password with a raw ``/``, ``?`` or
``#`` in it makes no valid URL, and stays hidden all the same.
"""

import re
from urllib.parse import urlsplit

from vfsd.errors import UsageError

_SECRET = ("password", "secret", "token")
_FILES = ("sqlite:", "memory:")
_WITHOUT_CREDENTIALS = (*_FILES, "unix:///")
_MIXED = re.compile(r"://.*[?&]\w*(?:password|secret|token)=.*@", re.IGNORECASE | re.DOTALL)
"""An ``@`` within a setting, or a setting within a password: no telling where the secret begins and ends."""
_USER_AND_PASSWORD = re.compile(r"([\w.~%+-]*:)[^/?#@]*", re.ASCII)
_SETTING = re.compile(r"\w+=", re.ASCII)
_HIDDEN = "***"
_HINT = "write / ? # @ and % in a password as %2F %3F %23 %40 and %25"


def hidden(url: str) -> str:
    """Return *url* without a password, wherever in it one may stand. Any string will do."""
    if url.startswith(_FILES):
        return url
    if _MIXED.search(url):
        return f"{url.partition(':')[0]}://{_HIDDEN}"
    place, mark, query = _without_credentials(url).partition("?")
    return place + mark + "&".join(map(_without_secret, query.split("&")))


def _without_credentials(url: str) -> str:
    """Blank all between ``://`` and the last ``@``, but for the name in what is plainly ``USER:PASSWORD``."""
    if url.startswith(_WITHOUT_CREDENTIALS) or "@" not in url:
        return url
    before, _, place = url.rpartition("@")
    scheme, mark, credentials = before.rpartition("://") if before.count("://") == 1 else ("", "", before)
    plain = _USER_AND_PASSWORD.fullmatch(credentials) if mark else None
    return f"{scheme}{mark}{plain[1] if plain else ''}{_HIDDEN}@{place}"


def _without_secret(setting: str) -> str:
    """Blank the value of a secret; also what is no setting, for it may be the end of one with a raw ``&`` in it."""
    key, equals, _ = setting.partition("=")
    if setting and not equals:
        return _HIDDEN
    return f"{key}={_HIDDEN}" if key.lower().endswith(_SECRET) else setting


def checked(url: str) -> str:
    """Return *url* if its credentials are where a URL has them. Raises UsageError, which shows none of them.

    Without this, the beginning of a password with a raw ``/``, ``?`` or ``#`` in it would be taken for a host's name.
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
