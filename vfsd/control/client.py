"""Asking a daemon from an ordinary, synchronous program. Imports in milliseconds: no trio, no store."""

import json
import socket
from pathlib import Path
from typing import Any

from vfsd.control.protocol import VERSION
from vfsd.errors import VfsdError


class NoAnswer(VfsdError):
    """Nobody listens at a control socket, or the answer did not come in time."""


def ask(path: Path, op: str, *, timeout: float = 2.0, **arguments: Any) -> Any:
    """Return the result of *op* at the socket *path*, waiting at most *timeout* seconds for each step.

    Raises NoAnswer, or VfsdError with the daemon's own words.
    """
    request = json.dumps({"v": VERSION, "id": 1, "op": op, **arguments}).encode() + b"\n"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
            asking.settimeout(timeout)
            asking.connect(str(path))
            asking.sendall(request)
            line = asking.makefile("rb").readline()
        answer = json.loads(line)
    except (OSError, ValueError) as error:
        raise NoAnswer(f"no answer at {path}: {error}") from None
    if not answer["ok"]:
        raise VfsdError(answer["error"]["message"])
    return answer["result"]
