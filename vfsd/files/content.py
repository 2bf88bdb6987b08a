"""Making the content of a file from the bytes of a request. Other tasks run meanwhile: 64 MiB take a while."""

import trio

from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.plan_subtree import FileContent

_AT_ONCE = 64 * CHUNK_SIZE


async def content_of(data: bytes) -> FileContent:
    """Return the content that consists of *data*."""
    chunks: dict[int, bytes] = {}
    for start in range(0, len(data), _AT_ONCE):
        if start:
            await trio.lowlevel.checkpoint()
        piece = FileContent.of(data[start : start + _AT_ONCE]).chunks
        chunks |= {start // CHUNK_SIZE + number: chunk for number, chunk in piece.items()}
    return FileContent(len(data), chunks)
