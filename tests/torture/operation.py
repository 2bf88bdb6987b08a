"""What every operation of a writer can do: happen for real, and happen in the model, a step at a time."""

from collections.abc import Iterator
from typing import Protocol

from tests.torture.model import Model


class Operation(Protocol):
    """One thing that a writer does; see :mod:`tests.torture.operations`."""

    def run(self, root: bytes) -> Iterator[None]:
        """Do it for real, below *root*, and yield after each change. Raises OSError, CutShort."""

    def steps(self, model: Model) -> Iterator[bool]:
        """Do it to *model*, and yield after each change: whether the next one may really be part of the same."""
