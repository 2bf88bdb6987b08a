"""Store URLs as people may see them. Imports nothing, so that a command need not load a store to show one."""

from urllib.parse import urlsplit

_SECRET = ("password", "secret", "token")


def hidden(url: str) -> str:
    """Return *url* without a password, wherever in it one may stand."""
    parts = urlsplit(url)
    netloc, query = _without_password(parts.netloc), "&".join(map(_without_secret, parts.query.split("&")))
    if (netloc, query) == (parts.netloc, parts.query):
        return url
    return parts._replace(netloc=netloc, query=query).geturl()


def _without_password(netloc: str) -> str:
    credentials, at, place = netloc.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{user}{colon}{'***' if colon else ''}{at}{place}"


def _without_secret(pair: str) -> str:
    key, equals, value = pair.partition("=")
    return f"{key}=***" if key.lower().endswith(_SECRET) else f"{key}{equals}{value}"
