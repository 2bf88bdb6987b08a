"""Mount namespaces for tests: one with a process in it, and one that only a file keeps.

Neither keeps the mounts of other programs of this machine busy.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.mounted import Mounted

_OTHERS = r"""
import re, subprocess, sys
from pathlib import Path

def decoded(field):
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), field)

for line in Path("/proc/mounts").read_bytes().split(b"\n")[:-1]:
    source, path, kind = map(decoded, line.split(b" ")[:3])
    if kind == b"fuse.vfsd" and sys.argv[1].encode() not in (source, path):
        subprocess.run(["umount", "-l", path], check=False, stderr=subprocess.DEVNULL)
"""
"""Removes from a namespace the mounts of other programs of this machine, which it would keep busy: all but one, which
is named by its source or its path."""


class Namespace:
    """A process in a mount namespace of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, *command: str | Path) -> str:
        """Run *command* in the namespace, and return what it prints, with its errors."""
        entered = ["nsenter", "--target", str(self.pid), "--mount", *map(str, command)]
        return subprocess.run(entered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


@contextmanager
def namespace(keep: Path, script: str = "", propagation: str = "private") -> Iterator[Namespace]:
    """Start a mount namespace that has the mount at *keep* as *script* leaves it."""
    program = f'"$1" -c "$2" "$0"\n{script}\necho ready; read end'
    command = [
        "unshare",
        "--mount",
        "--propagation",
        propagation,
        "sh",
        "-ec",
        program,
        str(keep),
        sys.executable,
        _OTHERS,
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield Namespace(process)
        finally:
            process.kill()


@contextmanager
def kept_namespace(mounted: Mounted, file: Path) -> Iterator[None]:
    """Keep a mount namespace without a process, which has *mounted*, by binding it to *file*, as ip-netns(8) does."""
    file.parent.mkdir()
    file.touch()
    subprocess.run(["mount", "--bind", file.parent, file.parent], check=True)
    subprocess.run(["mount", "--make-private", file.parent], check=True)  # the kernel demands that of the place
    command = ["unshare", f"--mount={file}", "--propagation", "private", sys.executable, "-c", _OTHERS]
    try:
        subprocess.run([*command, f"vfsd:{mounted.scope}"], check=True)
        yield
    finally:
        subprocess.run(["umount", "--recursive", file.parent], check=True)
