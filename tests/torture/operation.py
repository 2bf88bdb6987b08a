"""The interface of a writer's operation: it runs on the mount and in the model, step by step."""

from collections.abc import Iterator
from typing import Protocol

from tests.torture.model import Model


class Operation(Protocol):
    """One operation of a writer; see :mod:`tests.torture.operations`."""

    def run(self, root: bytes) -> Iterator[None]:
        """Run it below *root*, and yield after each change. Raises OSError, PartialWrite."""

    def steps(self, model: Model) -> Iterator[bool]:
        """Apply it to *model*. Yield after each change whether the next one may be in the same request."""
