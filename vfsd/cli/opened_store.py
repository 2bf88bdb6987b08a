"""One use of a store by a command that mounts nothing."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from vfsd.store.base import Store, StoreOptions
from vfsd.store.url import open_store

T = TypeVar("T")


def with_store(url: str, use: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store *url*, and return the result of *use*. Raises UsageError, StoreError."""

    async def run() -> T:
        store = open_store(url, StoreOptions())
        try:
            return await use(store)
        finally:
            await store.aclose()

    return trio.run(run)
