"""From Redis errors to the project's errors: one table for error replies and for redis-py's exceptions."""

from vfsd.errors import StoreError, StoreFull, StoreReadOnly, StoreRefused, StoreUnreachable, clause

_MEANING: dict[str, type[StoreError]] = {
    "OOM": StoreFull,
    "READONLY": StoreReadOnly,
    "LOADING": StoreUnreachable,
    "BUSY": StoreUnreachable,
    "CLUSTERDOWN": StoreUnreachable,
    "MASTERDOWN": StoreUnreachable,
    "TRYAGAIN": StoreUnreachable,
}
"""By the first word of an error reply. All others (NOAUTH, NOPERM, WRONGTYPE, MOVED …) mean StoreRefused."""

_HINTS = {
    "OOM": "raise maxmemory, or delete files",
    "READONLY": "this is a replica: point --store at the master",
    "DB": "name database 0 in the URL, as in redis://HOST:PORT/0, or raise 'databases' in redis.conf",
    "MISCONF": "Redis cannot write to its disk: see its log",
    "NOAUTH": "put user and password into the store URL",
    "WRONGPASS": "check user and password in the store URL",
    "NOPERM": "give this user rights on the keys vfsd:* (docs/format.md lists the commands)",
    "WRONGTYPE": "a key of the scope has another type (docs/format.md): restore it, or mount with --salvage",
    "MOVED": "this is one node of a cluster: use a server that holds the scope's slot",
}


def refusal(label: str, reply: BaseException | str) -> StoreError:
    """Return the StoreError for the error *reply* of the store *label*."""
    text = clause(reply)
    code = text.partition(" ")[0]
    hint = _HINTS.get(code)
    return _MEANING.get(code, StoreRefused)(f"the store {label} refuses: {text}" + (f"; {hint}" if hint else ""))
