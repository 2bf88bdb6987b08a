"""The content of a regular file as sparse chunks: pure arithmetic over a mapping from chunk number to bytes.

A missing chunk is zeros; a short one is followed by zeros; an all-zero chunk is never kept. Nothing here
changes its arguments.
"""

from collections.abc import Mapping

from vfsd.tree.change import CHUNK_SIZE, Chunk

_ZEROS = bytes(CHUNK_SIZE)


def read_chunks(chunks: Mapping[int, bytes], size: int, offset: int, length: int) -> bytes:
    """Return the bytes from *offset*, at most *length*, of a file that is *size* bytes long."""
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
    """Return bytes *start* to *end* of one chunk, with the zeros it does not hold."""
    chunk = chunks.get(number, b"")
    if start == 0 and end == len(chunk):
        return chunk
    piece = chunk[start:end]
    missing = end - start - len(piece)
    return piece + _ZEROS[:missing] if missing else piece


def write_chunks(chunks: Mapping[int, bytes], offset: int, data: bytes) -> dict[int, Chunk]:
    """Return the chunks, by number, that differ once *data* stands at *offset*.

    A chunk that has become all zeros is returned as ``b""``: it is to be dropped. Whole ones are not copied yet.
    """
    changed: dict[int, Chunk] = {}
    view = memoryview(data)
    position, end = offset, offset + len(data)
    while position < end:
        number, start = divmod(position, CHUNK_SIZE)
        length = min(CHUNK_SIZE - start, end - position)
        piece = view[position - offset : position - offset + length]
        if length == CHUNK_SIZE < len(data):
            changed[number] = piece if piece[0] else _sparse(bytes(piece))
        else:
            changed[number] = _sparse(_overlaid(chunks.get(number, b""), start, bytes(piece)))
        position += length
    return changed


def _overlaid(chunk: bytes, start: int, piece: bytes) -> bytes:
    """Return *chunk* with *piece* laid over it from *start*, zeros filling a gap before it."""
    if start == 0 and len(piece) >= len(chunk):
        return piece
    head = chunk[:start]
    return b"".join((head, _ZEROS[: start - len(head)], piece, chunk[start + len(piece) :]))


def _sparse(chunk: bytes) -> bytes:
    """Return *chunk*, or nothing if it is all zeros (the comparison stops at the first other byte)."""
    return b"" if chunk == _ZEROS[: len(chunk)] else chunk


def cut_chunks(chunks: Mapping[int, bytes], size: int) -> tuple[dict[int, bytes], tuple[int, ...]]:
    """Return what truncating to *size* does: chunks that become shorter, and the numbers of those that go."""
    boundary, kept = divmod(size, CHUNK_SIZE)
    dropped = tuple(number for number in chunks if number > boundary or (number == boundary and not kept))
    edge = chunks.get(boundary, b"")
    if not kept or len(edge) <= kept:
        return {}, dropped
    shorter = _sparse(edge[:kept])
    return ({boundary: shorter}, dropped) if shorter else ({}, (*dropped, boundary))
