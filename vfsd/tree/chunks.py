"""The content of a regular file as sparse chunks: arithmetic over a mapping from chunk number to bytes.

A missing chunk reads as zeros. A short chunk is followed by zeros. A chunk of nothing but zeros is never kept. No
function here changes its arguments.
"""

from collections.abc import Mapping

from vfsd.tree.change import CHUNK_SIZE, Chunk

_ZEROS = bytes(CHUNK_SIZE)


def read_chunks(chunks: Mapping[int, bytes], size: int, offset: int, length: int) -> bytes:
    """Return at most *length* bytes from *offset* of a file that is *size* bytes long."""
    end = min(offset + length, size)
    if offset >= end:
        return b""
    first, last = offset // CHUNK_SIZE, (end - 1) // CHUNK_SIZE
    if first == last:
        return _piece(chunks, first, offset - first * CHUNK_SIZE, end - first * CHUNK_SIZE)
    pieces = [_piece(chunks, first, offset - first * CHUNK_SIZE, CHUNK_SIZE)]
    pieces += [_piece(chunks, number, 0, CHUNK_SIZE) for number in range(first + 1, last)]
    pieces.append(_piece(chunks, last, 0, end - last * CHUNK_SIZE))
    return b"".join(pieces)


def _piece(chunks: Mapping[int, bytes], number: int, start: int, end: int) -> bytes:
    """Return the bytes from *start* to *end* of one chunk, filled up with the zeros that it does not hold."""
    chunk = chunks.get(number, b"")
    if start == 0 and end == len(chunk):
        return chunk
    piece = chunk[start:end]
    missing = end - start - len(piece)
    return piece + _ZEROS[:missing] if missing else piece


def write_chunks(chunks: Mapping[int, bytes], offset: int, data: bytes) -> dict[int, Chunk]:
    """Return the chunks, by number, that writing *data* at *offset* changes.

    A chunk that consists of zeros afterwards is returned as ``b""``: it must be dropped. A chunk that *data* fills
    completely is returned as a view of *data*, not as a copy, unless it is all of *data*.
    """
    changed: dict[int, Chunk] = {}
    view = memoryview(data)
    position, end = offset, offset + len(data)
    while position < end:
        number, start = divmod(position, CHUNK_SIZE)
        length = min(CHUNK_SIZE - start, end - position)
        piece = view[position - offset : position - offset + length]
        if length == CHUNK_SIZE < len(data):
            # Only a chunk that begins with a zero can be all zeros: looking at one byte saves most copies.
            changed[number] = piece if piece[0] else _empty_if_zeros(bytes(piece))
        else:
            changed[number] = _empty_if_zeros(_overwritten(chunks.get(number, b""), start, bytes(piece)))
        position += length
    return changed


def _overwritten(chunk: bytes, start: int, piece: bytes) -> bytes:
    """Return *chunk* overwritten by *piece* from *start*. If the chunk ends before *start*, zeros fill the gap."""
    if start == 0 and len(piece) >= len(chunk):
        return piece
    head = chunk[:start]
    return b"".join((head, _ZEROS[: start - len(head)], piece, chunk[start + len(piece) :]))


def _empty_if_zeros(chunk: bytes) -> bytes:
    """Return *chunk*, or ``b""`` if it is all zeros. The comparison stops at the first byte that is not zero."""
    return b"" if chunk == _ZEROS[: len(chunk)] else chunk


def cut_chunks(chunks: Mapping[int, bytes], size: int) -> tuple[dict[int, bytes], tuple[int, ...]]:
    """Return what truncating to *size* does: the chunks that become shorter, and the numbers of those to drop."""
    boundary, kept = divmod(size, CHUNK_SIZE)
    dropped = tuple(number for number in chunks if number > boundary or (number == boundary and not kept))
    last = chunks.get(boundary, b"")
    if not kept or len(last) <= kept:
        return {}, dropped
    shorter = _empty_if_zeros(last[:kept])
    return ({boundary: shorter}, dropped) if shorter else ({}, (*dropped, boundary))
