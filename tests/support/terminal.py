"""A real interactive shell on a terminal of its own: what the tests of completion type into."""

import os
import pty
import re
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.mounted import PATIENCE

_SHOW = "\x07"
"""The key (Ctrl-G) at which the shell shows the line that is being typed."""

_PROMPT = "ready> "

_COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "--no-rcs", "-i"],
}
_PREPARE = {
    "bash": r"""show() { printf '<<%s>>' "$READLINE_LINE"; READLINE_LINE=; }; bind -x '"\C-g": show'""",
    "zsh": """bindkey -e; autoload -U compinit; compinit -u -D; zle -N show; bindkey '^G' show
    show() { zle -I; print -rn -- "<<$BUFFER>>"; BUFFER= }""",
}
"""Give the key a function that shows the line, then empties it."""


class Terminal:
    """An interactive *shell* (bash, zsh), started in *cwd* with *env*."""

    def __init__(self, shell: str, env: dict[str, str], cwd: Path) -> None:
        self._descriptor, inner = pty.openpty()
        environment = {**env, "TERM": "dumb", "PS1": _PROMPT, "INPUTRC": "/dev/null", "ZDOTDIR": os.fspath(cwd)}
        self._process = subprocess.Popen(
            _COMMANDS[shell], env=environment, cwd=cwd, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        os.set_blocking(self._descriptor, False)
        self.screen = ""
        """All that the shell has printed so far."""
        self.run(_PREPARE[shell])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._descriptor)

    def run(self, command: str) -> None:
        """Run *command*, and return when it has ended."""
        self._type(f"{command}; echo en''ded\n")
        self._wait_for(f"ended\r\n.*?{_PROMPT}")

    def completed(self, line: str) -> str:
        """Type *line* and TAB, and return the line that the shell then has. The line is not run."""
        self._type(f"{line}\t{_SHOW}")
        return self._wait_for(f"<<(.*?)>>.*?{_PROMPT}")

    def _type(self, text: str) -> None:
        os.write(self._descriptor, os.fsencode(text))

    def _wait_for(self, pattern: str) -> str:
        """Wait until the shell prints *pattern*, and return the last group that it has."""
        deadline, begin = time.monotonic() + PATIENCE, len(self.screen)
        while (match := re.search(pattern, self.screen[begin:], re.DOTALL)) is None:
            assert time.monotonic() < deadline, f"gave up waiting for {pattern!r}: {self.screen!r}"
            self._read()
        return match[match.lastindex or 0]

    def _read(self) -> None:
        try:
            self.screen += os.fsdecode(os.read(self._descriptor, 65_536))
        except BlockingIOError:
            time.sleep(0.01)  # the interval between two checks
