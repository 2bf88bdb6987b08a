"""What Redis says when it refuses, and what that means here: one table for error replies and redis-py's exceptions."""

from vfsd.errors import StoreError, StoreFull, StoreReadOnly, StoreRefused, StoreUnreachable

_MEANING: dict[str, type[StoreError]] = {
    "OOM": StoreFull,
    "READONLY": StoreReadOnly,
    "LOADING": StoreUnreachable,
    "BUSY": StoreUnreachable,
    "CLUSTERDOWN": StoreUnreachable,
    "MASTERDOWN": StoreUnreachable,
    "TRYAGAIN": StoreUnreachable,
}
"""First word of an error reply → failure. Everything else (NOAUTH, NOPERM, WRONGTYPE, MOVED …) is a refusal."""

_HINTS = {
    "OOM": "raise maxmemory, or delete files",
    "READONLY": "this is a replica: point --store at the master",
    "MISCONF": "Redis cannot write to its disk: see its log",
    "NOAUTH": "put user and password into the store URL",
    "WRONGPASS": "check user and password in the store URL",
    "NOPERM": "give this user rights on the keys vfsd:* (docs/format.md lists the commands)",
    "MOVED": "this is one node of a cluster: use a server that holds the scope's slot",
}


def refusal(label: str, reply: BaseException | str) -> StoreError:
    """Return the failure that the error *reply* of the store *label* means."""
    text = str(reply)
    code = text.partition(" ")[0]
    hint = _HINTS.get(code)
    return _MEANING.get(code, StoreRefused)(f"the store {label} refuses: {text}" + (f"; {hint}" if hint else ""))
