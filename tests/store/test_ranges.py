"""The range of every field of every record: the edges are read, and what lies outside is damage in every store."""

import re
import sqlite3
import stat
from contextlib import closing

import pytest

from tests.support.stores import DurableBackend, RedisBackend, SqliteBackend, claimed, directory, regular, stored
from vfsd.errors import ScopeDamaged
from vfsd.store.base import ClaimTerms
from vfsd.store.records import pack_inode, unpack_entry, unpack_inode, unpack_limits
from vfsd.tree.change import Attributes, Limits, PutEntry, PutInode

FILE = Attributes(stat.S_IFREG | 0o644, 1, 0, 0, 0, 5, 1, 2, 3)
LINK = Attributes(stat.S_IFLNK | 0o777, 1, 0, 0, 0, 6, 1, 2, 3, b"target")


def _with_xattrs(*xattrs: tuple[bytes, bytes]) -> Attributes:
    return FILE._replace(xattrs=xattrs)


SOUND = {
    **{
        f"kind {kind >> 12:o}": FILE._replace(mode=kind | 0o7777, size=0)
        for kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR, stat.S_IFBLK)
    },
    "largest file": FILE._replace(size=2**63 - 1),
    "most links": FILE._replace(nlink=2**32 - 1),
    "largest ids": FILE._replace(uid=2**32 - 2, gid=2**32 - 2),
    "earliest times": FILE._replace(atime_ns=1 - 2**63, mtime_ns=1 - 2**63, ctime_ns=1 - 2**63),
    "latest times": FILE._replace(atime_ns=2**63 - 1, mtime_ns=2**63 - 1, ctime_ns=2**63 - 1),
    "largest device": FILE._replace(mode=stat.S_IFCHR, rdev=2**32 - 1),
    "link": LINK,
    "longest target": LINK._replace(target=b"t" * 4095, size=4095),
    "largest attribute": _with_xattrs((b"n" * 255, bytes(65_536))),
    "longest list": _with_xattrs(*((b"%0255d" % number, b"") for number in range(256))),
}
DAMAGED = {
    **{f"kind {kind:o}": FILE._replace(mode=kind << 12 | 0o644) for kind in (0, 3, 5, 7, 9, 11, 13, 14, 15, 16, 2**19)},
    "no links": FILE._replace(nlink=0),
    "uid": FILE._replace(uid=2**32 - 1),
    "gid": FILE._replace(gid=2**32 - 1),
    "device": FILE._replace(mode=stat.S_IFCHR, rdev=2**32),
    "size": FILE._replace(size=2**63),
    "largest size": FILE._replace(size=2**64 - 1),
    "atime": FILE._replace(atime_ns=-(2**63)),
    "mtime": FILE._replace(mtime_ns=-(2**63)),
    "ctime": FILE._replace(ctime_ns=-(2**63)),
    "target of a file": FILE._replace(target=b"target"),
    "no target": LINK._replace(target=b"", size=0),
    "too long a target": LINK._replace(target=b"t" * 4096, size=4096),
    "NUL in a target": LINK._replace(target=b"tar\0et"),
    "size of a link": LINK._replace(size=5),
    "attribute without a name": _with_xattrs((b"", b"value")),
    "NUL in the name of an attribute": _with_xattrs((b"user.\0", b"value")),
    "too large an attribute": _with_xattrs((b"user.a", bytes(65_537))),
    "the same attribute twice": _with_xattrs((b"user.a", b"1"), (b"user.a", b"2")),
    "too long a list": _with_xattrs(*((b"%0255d" % number, b"") for number in range(257))),
    "too many attributes": _with_xattrs(*((b"user.%d" % number, bytes(50_000)) for number in range(3))),
}


@pytest.mark.parametrize("attributes", SOUND.values(), ids=SOUND)
def test_every_value_within_its_range_is_read(attributes: Attributes) -> None:
    assert unpack_inode(pack_inode(attributes)) == attributes


@pytest.mark.parametrize("attributes", DAMAGED.values(), ids=DAMAGED)
def test_an_inode_with_a_field_outside_its_range_is_damage(attributes: Attributes) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        unpack_inode(pack_inode(attributes))
    assert len(str(raised.value)) < 200


def test_every_cut_or_extended_record_is_damage() -> None:
    record = pack_inode(LINK._replace(xattrs=((b"user.a", b"value"),)))
    for length in range(len(record)):
        with pytest.raises(ValueError, match=r"."):
            unpack_inode(record[:length])
    with pytest.raises(ValueError, match=r"."):
        unpack_inode(record + b"\0")


ENTRIES = {
    (b"1/name", b"2 3"): PutEntry(1, b"name", 2, 3),
    (b"1/" + b"n" * 255, b"2 3"): PutEntry(1, b"n" * 255, 2, 3),
    (b"1/...", b"2 3"): PutEntry(1, b"...", 2, 3),
    (b"1/\n", b"2 3"): PutEntry(1, b"\n", 2, 3),
    (b"1/\xff .", b"2 3"): PutEntry(1, b"\xff .", 2, 3),
    (b"%d/a" % 2**62, b"%d %d" % (2**62, 2**62)): PutEntry(2**62, b"a", 2**62, 2**62),
}
DAMAGED_ENTRY_KEYS = [
    b"",
    b"1",
    b"1/",
    b"/a",
    b"0/a",
    b"-1/a",
    b"01/a",
    b"+1/a",
    b" 1/a",
    b"1_0/a",
    b"x/a",
    b"\xb2/a",
    b"1/.",
    b"1/..",
    b"1/a/b",
    b"1/a\0",
    b"1/" + b"n" * 256,
    b"%d/a" % (2**62 + 1),
    b"9" * 5000 + b"/a",
]
DAMAGED_ENTRY_VALUES = [
    b"",
    b"2",
    b"2 ",
    b" 3",
    b"2 3 4",
    b"2  3",
    b"2 3\n",
    b"x 3",
    b"2 x",
    b"1 3",
    b"0 3",
    b"-2 3",
    b"02 3",
    b"2 03",
    b"2 +3",
    b"2 2",
    b"2 0",
    b"2 -3",
    b"%d 3" % (2**62 + 1),
    b"2 %d" % (2**62 + 1),
    b"2 " + b"9" * 5000,
]


@pytest.mark.parametrize(("stored", "entry"), ENTRIES.items())
def test_every_entry_within_its_ranges_is_read(stored: tuple[bytes, bytes], entry: PutEntry) -> None:
    assert unpack_entry(*stored) == entry


@pytest.mark.parametrize(
    ("key", "value"),
    [*((key, b"2 3") for key in DAMAGED_ENTRY_KEYS), *((b"1/a", value) for value in DAMAGED_ENTRY_VALUES)],
)
def test_an_entry_outside_its_ranges_is_damage(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        unpack_entry(key, value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "7",
        "null",
        '"x"',
        '{"max_bytes": "1"}',
        '{"max_bytes": true}',
        '{"max_files": 1.5}',
        '{"max_files": -1}',
        '{"max_bytes": 9223372036854775808}',
        '{"max_bytes": [1]}',
        '{"unknown": 1}',
        "[" * 100_000,
    ],
)
def test_limits_that_are_no_numbers_within_their_range_are_damage(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        unpack_limits(text)
    assert len(str(raised.value)) < 700


def test_limits_within_their_range_are_read() -> None:
    assert unpack_limits('{"max_bytes": 9223372036854775807, "max_files": 0}') == Limits(2**63 - 1, 0, None)


@pytest.mark.parametrize("text", [b"0", b"-1", b"01", b"+1", b" 1", b"1_0", b"x", b"", b"%d" % (2**62 + 1)])
async def test_a_number_of_an_inode_outside_its_range_is_damage_in_redis(
    redis_backend: RedisBackend, scope: str, text: bytes
) -> None:
    async with claimed(redis_backend, scope) as writer:
        await writer.commit(PutInode(1, directory()), PutInode(2, regular()))
    key = f"vfsd:{{{scope}}}:inodes"
    with redis_backend.client() as client:
        client.hset(key, text, pack_inode(regular()))
    found = await stored(redis_backend, scope)
    assert set(found.inodes) == {1, 2}
    assert [damage.key for damage in found.damages] == [f"{key} field {text!r}"]


@pytest.mark.parametrize("text", [b"-1", b"01", b"+1", b" 1", b"x", b"", b"%d" % 2**49])
async def test_a_chunk_number_outside_its_range_is_damage_in_redis(
    redis_backend: RedisBackend, scope: str, text: bytes
) -> None:
    async with claimed(redis_backend, scope) as writer:
        await writer.commit(PutInode(1, directory()), PutInode(2, regular()))
    key = f"vfsd:{{{scope}}}:data:2"
    with redis_backend.client() as client:
        client.hset(key, text, b"content")
    found = await stored(redis_backend, scope)
    assert not found.chunks
    assert [damage.key for damage in found.damages] == [f"{key} field {text!r}"]


@pytest.mark.parametrize("part", ["inodes", "entries", "data:2", "data:3"])
async def test_a_key_of_a_wrong_type_is_damage_in_redis(redis_backend: RedisBackend, scope: str, part: str) -> None:
    """The file 2 is small, and its chunks are read together with others. The file 3 is read in slices."""
    async with claimed(redis_backend, scope) as writer:
        await writer.commit(PutInode(1, directory()), PutInode(2, regular(size=5)), PutInode(3, regular()))
    key = f"vfsd:{{{scope}}}:{part}"
    with redis_backend.client() as client:
        client.delete(key)
        client.set(key, "a string")
    assert [damage.key for damage in (await stored(redis_backend, scope)).damages] == [key]


HEADERS: dict[str, list[str | None]] = {
    "next": ["-1", "0", "1", "02", "x", "", str(2**62 + 1), str(2**63 - 1), None],
    "epoch": ["-1", "0", "x", str(10**14), str(2**63 - 1), None],
    "seq": ["-1", "x", "1.5", str(2**63 - 1), None],
    "created": ["-1", "x", str(2**63), None],
    "limits": ["", "[]", '{"max_bytes": "many"}', '{"max_files": -1}'],
    "dropping": ["x", "2"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in HEADERS for value in HEADERS[field]])
async def test_a_damaged_header_is_refused_by_a_claim_and_named_when_read_in_redis(
    redis_backend: RedisBackend, scope: str, field: str, value: str | None
) -> None:
    async with claimed(redis_backend, scope) as writer:
        await writer.commit(PutInode(1, directory()))
    key = f"vfsd:{{{scope}}}:scope"
    with redis_backend.client() as client:
        client.hdel(key, field)
        if value is not None:
            client.hset(key, field, value)
    with pytest.raises(ScopeDamaged, match=field):
        async with claimed(redis_backend, scope, terms=ClaimTerms(take_over=True)):
            pass
    found = await stored(redis_backend, scope)
    assert set(found.inodes) == {1}
    assert [damage.key for damage in found.damages] == [f"{key} field {field.encode()!r}"]
    await _assert_listed_as_damaged(redis_backend, scope, field)


SQLITE_HEADERS: dict[str, list[int | str]] = {
    "next_ino": [-1, 0, 1, 2**62 + 1, 2**63 - 1],
    "epoch": [-1, 0, 10**14, 2**63 - 1],
    "created_ns": [-1],
    "limits": ["", "[]", '{"max_bytes": "many"}', '{"max_files": -1}'],
}


@pytest.mark.parametrize(
    ("column", "value"), [(column, value) for column in SQLITE_HEADERS for value in SQLITE_HEADERS[column]]
)
async def test_a_damaged_header_is_refused_by_a_claim_and_named_when_read_in_sqlite(
    sqlite_backend: SqliteBackend, scope: str, column: str, value: int | str
) -> None:
    async with claimed(sqlite_backend, scope) as writer:
        await writer.commit(PutInode(1, directory()))
    with closing(sqlite3.connect(sqlite_backend.path)) as connection, connection:
        connection.execute(f"UPDATE scopes SET {column} = ?", (value,))
    with pytest.raises(ScopeDamaged, match=scope):
        async with claimed(sqlite_backend, scope, terms=ClaimTerms(take_over=True)):
            pass
    found = await stored(sqlite_backend, scope)
    assert set(found.inodes) == {1}
    assert [damage.key for damage in found.damages] == [f"scopes {scope} {column.partition('_')[0]}"]
    await _assert_listed_as_damaged(sqlite_backend, scope, column.partition("_")[0])


async def _assert_listed_as_damaged(backend: DurableBackend, scope: str, field: str) -> None:
    """Check that a list of the scopes says what is wrong with *scope*, and still has the others."""
    sound = f"{scope}-sound"
    async with claimed(backend, sound):
        pass
    store = backend.open()
    try:
        listed = {summary.name: summary for summary in await store.scopes()}
    finally:
        await store.aclose()
    assert listed[sound].damage is None
    damage = listed[scope].damage
    assert damage is not None
    assert field in damage.key


@pytest.mark.parametrize("name", ["inodes", "entries", "leftovers"])
async def test_a_key_of_another_type_is_damage_in_redis(redis_backend: RedisBackend, scope: str, name: str) -> None:
    """A claim names it, and what is left can be read."""
    key = f"vfsd:{{{scope}}}:{name}"
    async with claimed(redis_backend, scope) as writer:
        await writer.commit(PutInode(2, regular()))
    with redis_backend.client() as client:
        client.delete(key)
        client.set(key, "text")
    with pytest.raises(ScopeDamaged, match=f"{re.escape(key)}; restore it"):
        async with claimed(redis_backend, scope):
            pass
    assert key in [damage.key for damage in (await stored(redis_backend, scope)).damages]
