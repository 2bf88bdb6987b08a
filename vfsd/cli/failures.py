"""Failures of a command that works on several things: each is told in a line, and the first decides the exit status."""

from vfsd.cli.output import say
from vfsd.errors import VfsdError


class Failures:
    """The failures so far. A command tells each when it happens, and ends with :meth:`raise_if_any`."""

    def __init__(self) -> None:
        self._first: VfsdError | None = None

    def tell(self, error: VfsdError) -> None:
        """Print *error*, and remember it if it is the first."""
        say(f"vfsd: {error}", err=True)
        self._first = self._first or error

    def raise_if_any(self) -> None:
        """Raise :class:`Told` if there was a failure."""
        if self._first is not None:
            raise Told(self._first)


class Told(VfsdError):
    """A failure that has been printed already. *first* decides the exit status."""

    def __init__(self, first: VfsdError) -> None:
        super().__init__(str(first))
        self.first = first
