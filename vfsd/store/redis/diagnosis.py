"""What listens at an address where no Redis answers as it should: so that an error can say what is there instead.

It is asked only after the first contact with a server has failed, over connections of its own, which send no password
and no data. It never raises: an error that it cannot explain is shown as it is.
"""

import socket
import ssl
import stat
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

_SECONDS = 1.0
"""How long each step may take: connect, answer, handshake."""
_ANSWER_BYTES = 64
_LONGEST_SHOWN = 40

_QUESTION = b"PING\r\n"
_BEGINNINGS = {
    b"HTTP/": "an HTTP server answers there, not Redis",
    b"<": "an HTTP server answers there, not Redis",
    b"SSH-": "an SSH server answers there, not Redis",
    b"ERROR\r\n": "memcached answers there, or the like, not Redis",
}
_NO_SOCKET = "that is no socket; name the one that redis.conf calls unixsocket"
_TLS_ALERT = b"\x15\x03"
_REDIS = (b"+PONG", b"-")
_TLS_WANTED = "the server there expects TLS; write rediss:// instead of redis://"
_TLS_UNKNOWN = "Redis answers there without TLS; write redis:// instead of rediss://"


def what_answers(connecting: dict[str, Any], *, with_tls: bool) -> str | None:
    """Return a clause about what listens where redis-py connects, with the settings *connecting* and perhaps TLS.

    None if nothing can be said: nobody listens, or it is a Redis and spoken to as it wants.
    """
    with suppress(OSError):
        if "path" in connecting and not stat.S_ISSOCK(Path(connecting["path"]).stat().st_mode):
            return _NO_SOCKET
        return _explained(_answer(connecting), connecting, with_tls=with_tls)
    return None


def _explained(answer: bytes | None, connecting: dict[str, Any], *, with_tls: bool) -> str | None:
    if answer is None:
        return f"it accepts connections, but says nothing for {_SECONDS:g} s: it is no Redis, or it hangs"
    if not answer or answer.startswith(_TLS_ALERT):
        return _TLS_WANTED if not with_tls and _speaks_tls(connecting) else None
    if answer.startswith(_REDIS):
        return _TLS_UNKNOWN if with_tls else None
    known = next((meaning for beginning, meaning in _BEGINNINGS.items() if answer.startswith(beginning)), None)
    shown = answer.split(b"\n")[0].decode(errors="backslashreplace").strip()[:_LONGEST_SHOWN]
    return known or f"what answers there is no Redis: it says {shown!r}"


def _answer(connecting: dict[str, Any]) -> bytes | None:
    """Return the first bytes that the server says, b"" if it hangs up, None if it says nothing in time."""
    with closing(_connected(connecting)) as connection:
        try:
            connection.sendall(_QUESTION)
            return connection.recv(_ANSWER_BYTES)
        except TimeoutError:
            return None
        except ConnectionError:
            return b""


def _speaks_tls(connecting: dict[str, Any]) -> bool:
    """Return whether the server completes a handshake. Nothing is sent, so its certificate does not matter."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with closing(_connected(connecting)) as connection:
        try:
            context.wrap_socket(connection).close()
        except ssl.SSLError as error:
            return error.reason != "WRONG_VERSION_NUMBER" and not isinstance(error, ssl.SSLEOFError)
        return True


def _connected(connecting: dict[str, Any]) -> socket.socket:
    """Return a connection to the server. Raises OSError."""
    if path := connecting.get("path"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_SECONDS)
        try:
            connection.connect(path)
        except OSError:
            connection.close()
            raise
        return connection
    address = (connecting.get("host", "localhost"), connecting.get("port", 6379))
    return socket.create_connection(address, _SECONDS)
