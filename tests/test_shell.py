"""A quoted word is read back by shells exactly as it was, and can be printed."""

import os
import subprocess

import pytest

from tests.support.names import ODD
from vfsd.printable import printable
from vfsd.shell import quoted


@pytest.mark.parametrize("name", [*ODD, bytes(range(1, 256)), b"\xffab\x1c00", b"plain", b"", b"!! !x"], ids=ascii)
def test_bash_reads_a_quoted_word_back(name: bytes) -> None:
    word = quoted(os.fsdecode(name))
    assert printable(word) == word
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout == name
