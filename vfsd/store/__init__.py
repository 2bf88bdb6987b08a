"""Where a scope lives when no daemon holds it. See :mod:`vfsd.store.base` for the contract.

:func:`open_store` finds the implementation for a URL: ``redis://``, ``rediss://``, ``unix://``, ``sqlite:``,
``memory:``, or one that another package offers under the entry-point group ``vfsd.stores``.
"""

from importlib import import_module
from urllib.parse import urlsplit

from vfsd.errors import UsageError
from vfsd.store.base import Store, StoreFactory, StoreOptions
from vfsd.store.label import hidden

_BUILT_IN = {
    "redis": "vfsd.store.redis.store",
    "rediss": "vfsd.store.redis.store",
    "unix": "vfsd.store.redis.store",
    "redis+sentinel": "vfsd.store.redis.store",
    "sqlite": "vfsd.store.sqlite.store",
    "memory": "vfsd.store.memory",
}


def open_store(url: str, options: StoreOptions) -> Store:
    """Return the store that *url* names; nothing is connected yet. Raises UsageError for a scheme nobody serves."""
    scheme = urlsplit(url).scheme
    if scheme in _BUILT_IN:
        factory: StoreFactory = import_module(_BUILT_IN[scheme]).open_store
        return factory(url, options)
    from importlib import metadata  # noqa: PLC0415 (slow to import, and rarely needed)

    for entry_point in metadata.entry_points(group="vfsd.stores", name=scheme):
        factory = entry_point.load()
        return factory(url, options)
    known = ", ".join(sorted(_BUILT_IN))
    raise UsageError(f"store {hidden(url)}: unknown scheme {scheme!r}; this vfsd knows {known}")
