"""Sparse content: reading and writing over holes and chunk boundaries, cutting, and never keeping zeros."""

import random

import pytest

from vfsd.tree.change import CHUNK_SIZE
from vfsd.tree.chunks import cut_chunks, read_chunks, write_chunks

C = CHUNK_SIZE
FULL = b"x" * C


def with_changes(chunks: dict[int, bytes], changed: dict[int, bytes]) -> dict[int, bytes]:
    """Return *chunks* as they are once *changed* has been taken over."""
    return {number: chunk for number, chunk in {**chunks, **changed}.items() if chunk}


@pytest.mark.parametrize(
    ("chunks", "size", "offset", "length", "expected"),
    [
        pytest.param({}, 0, 0, 10, b"", id="nothing there"),
        pytest.param({0: b"abc"}, 3, 0, 3, b"abc", id="all of it"),
        pytest.param({0: b"abc"}, 3, 1, 1, b"b", id="a part"),
        pytest.param({0: b"abc"}, 3, 1, 100, b"bc", id="beyond the end: what there is"),
        pytest.param({0: b"abc"}, 3, 3, 1, b"", id="at the end"),
        pytest.param({0: b"abc"}, 3, 2**62, 1, b"", id="far past the end"),
        pytest.param({0: b"abc"}, 3, 0, 0, b"", id="no bytes asked"),
        pytest.param({0: b"abc"}, 6, 0, 6, b"abc\0\0\0", id="a short chunk goes on in zeros"),
        pytest.param({0: b"abc"}, 6, 4, 6, b"\0\0", id="only the zeros after a short chunk"),
        pytest.param({}, 5, 1, 3, b"\0\0\0", id="a hole within one chunk"),
        pytest.param({}, 3 * C, 1, 3 * C, bytes(3 * C - 1), id="a hole of three chunks"),
        pytest.param({0: FULL, 2: FULL}, 3 * C, C - 1, C + 2, b"x" + bytes(C) + b"x", id="a hole between chunks"),
        pytest.param({0: b"a", 1: b"b"}, C + 1, 0, C + 1, b"a" + bytes(C - 1) + b"b", id="over a boundary"),
        pytest.param({0: FULL, 1: FULL}, 2 * C, 0, 2 * C, FULL + FULL, id="content_of chunks"),
        pytest.param({1: b"b"}, C + 1, C, 1, b"b", id="from a boundary"),
        pytest.param({0: FULL, 1: FULL}, 2 * C, 0, C, FULL, id="up to a boundary"),
        pytest.param({2**49 - 1: b"z"}, 2**63 - 1, (2**49 - 1) * C, 2, b"z\0", id="near the largest offset"),
    ],
)
def test_read(chunks: dict[int, bytes], size: int, offset: int, length: int, expected: bytes) -> None:
    assert read_chunks(chunks, size, offset, length) == expected


@pytest.mark.parametrize(
    ("chunks", "offset", "data", "expected"),
    [
        pytest.param({}, 0, b"abc", {0: b"abc"}, id="first bytes"),
        pytest.param({0: b"abc"}, 3, b"def", {0: b"abcdef"}, id="an append"),
        pytest.param({0: b"abc"}, 1, b"X", {0: b"aXc"}, id="in the middle"),
        pytest.param({0: b"abc"}, 0, b"X", {0: b"Xbc"}, id="at the start: the rest stays"),
        pytest.param({0: b"abc"}, 0, b"defg", {0: b"defg"}, id="over all of it"),
        pytest.param({0: b"a"}, 3, b"b", {0: b"a\0\0b"}, id="a gap within a chunk is zeros"),
        pytest.param({}, C - 1, b"ab", {0: bytes(C - 1) + b"a", 1: b"b"}, id="over a boundary"),
        pytest.param({}, 5 * C, b"z", {5: b"z"}, id="past a hole: the hole is nothing"),
        pytest.param({0: FULL}, C, b"z", {1: b"z"}, id="an untouched chunk is not mentioned"),
        pytest.param({}, 0, FULL + FULL + b"a", {0: FULL, 1: FULL, 2: b"a"}, id="many chunks"),
        pytest.param({}, 0, bytes(2 * C), {0: b"", 1: b""}, id="zeros are not kept"),
        pytest.param({0: b"abc"}, 0, bytes(3), {0: b""}, id="a chunk that becomes zeros goes"),
        pytest.param({0: b"abc"}, 1, bytes(9), {0: b"a" + bytes(9)}, id="zeros after something are kept"),
        pytest.param({}, 7, bytes(3), {0: b""}, id="zeros written into a hole"),
        pytest.param({}, 7, b"", {}, id="nothing written"),
    ],
)
def test_write(chunks: dict[int, bytes], offset: int, data: bytes, expected: dict[int, bytes]) -> None:
    before = dict(chunks)
    assert write_chunks(chunks, offset, data) == expected
    assert chunks == before


@pytest.mark.parametrize(
    ("chunks", "size", "shorter", "dropped"),
    [
        pytest.param({0: b"abc"}, 2, {0: b"ab"}, set(), id="within a chunk"),
        pytest.param({0: b"abc"}, 3, {}, set(), id="where it ends"),
        pytest.param({0: b"abc"}, 9, {}, set(), id="past a short chunk"),
        pytest.param({0: b"abc"}, 0, {}, {0}, id="to nothing"),
        pytest.param({0: FULL, 1: FULL, 2: FULL}, C, {}, {1, 2}, id="at a boundary"),
        pytest.param({0: FULL, 1: FULL, 2: FULL}, C + 1, {1: b"x"}, {2}, id="one past a boundary"),
        pytest.param({0: FULL, 1: FULL, 2: FULL}, C - 1, {0: FULL[:-1]}, {1, 2}, id="one before a boundary"),
        pytest.param({0: b"\0\0c", 1: b"d"}, 2, {}, {0, 1}, id="only zeros remain of the last"),
        pytest.param({3: b"d"}, 5, {}, {3}, id="in a hole"),
        pytest.param({}, 5, {}, set(), id="no chunks at all"),
    ],
)
def test_cut(chunks: dict[int, bytes], size: int, shorter: dict[int, bytes], dropped: set[int]) -> None:
    before = dict(chunks)
    found_shorter, found_dropped = cut_chunks(chunks, size)
    assert (found_shorter, set(found_dropped)) == (shorter, dropped)
    assert len(found_dropped) == len(dropped)
    assert chunks == before


def test_random_writes_cuts_and_reads_are_those_of_a_plain_byte_string() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    chunks: dict[int, bytes] = {}
    plain = bytearray()
    for _ in range(300):
        offset = chance.choice((0, 1, C - 1, C, 2 * C, chance.randrange(3 * C)))
        if chance.random() < 0.3:
            size = chance.randrange(len(plain) + 1)
            shorter, dropped = cut_chunks(chunks, size)
            chunks = with_changes({k: v for k, v in chunks.items() if k not in dropped}, shorter)
            del plain[size:]
        else:
            data = chance.choice((b"", b"a", b"\0")) * chance.choice((1, 100, C - 1, C, C + 1, 2 * C + 5))
            written = {number: bytes(chunk) for number, chunk in write_chunks(chunks, offset, data).items()}
            chunks = with_changes(chunks, written)
            if data:
                plain.extend(bytes(max(0, offset + len(data) - len(plain))))
                plain[offset : offset + len(data)] = data
        start, length = chance.randrange(4 * C), chance.randrange(4 * C)
        assert read_chunks(chunks, len(plain), start, length) == plain[start : start + length]
        assert read_chunks(chunks, len(plain), 0, len(plain)) == plain
        assert all(any(chunk) and len(chunk) <= C for chunk in chunks.values())
