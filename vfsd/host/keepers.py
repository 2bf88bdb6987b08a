"""What keeps a file system alive after its mount has been removed here: programs, and other mount namespaces."""

from typing import Protocol

from vfsd.host.namespaces import held_elsewhere, kept, namespace_of
from vfsd.host.users import users


class Keeper(Protocol):
    """What keeps a file system alive."""

    @property
    def certain(self) -> bool:
        """Whether this process has seen it."""

    def describe(self) -> str:
        """Return one phrase for people."""

    def remedy(self) -> str:
        """Return the command that ends it, or "" if there is none."""


UNSEEN = "what cannot be seen from here: a mount namespace without a process, or a program of another user"


def keepers(device: str, mountpoint: str) -> list[Keeper]:
    """Return what keeps the file system *device* alive, which was mounted at *mountpoint*.

    A namespace stands for the programs in it. What is not certain is named only if nothing else is found.
    """
    places, lonely = held_elsewhere(device), kept(device, mountpoint)
    named = {namespace_of(place.pid) for place in places}
    programs = (user for user in users(device) if namespace_of(user.pid) not in named)
    found: list[Keeper] = [*places, *lonely, *programs]
    return [keeper for keeper in found if keeper.certain] or found
