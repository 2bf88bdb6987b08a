"""The header of a scope in Redis: which fields it has, and what is wrong with them."""

from collections.abc import Sequence
from typing import NamedTuple

from vfsd.store.ranges import HEADER_NUMBERS, number
from vfsd.store.records import unpack_limits

FIELDS = (*HEADER_NUMBERS, "limits")
"""What to ask for. ``owner`` and ``token`` belong to a claim."""

_OPTIONAL = frozenset({"dropping", "limits"})


class Header(NamedTuple):
    """The *numbers* in a header by field, 0 where there is none, and *faults*: what is wrong, by field.

    *values* are the fields as they are stored. They change with every commit and every claim.
    """

    values: tuple[bytes | None, ...]
    numbers: dict[str, int]
    faults: dict[str, str]


def read_header(values: Sequence[bytes | None]) -> Header:
    """Return the header that consists of *values*, in the order of :data:`FIELDS`."""
    numbers, faults = dict.fromkeys(HEADER_NUMBERS, 0), {}
    for field, value in zip(FIELDS, values, strict=True):
        try:
            if value is not None and field in HEADER_NUMBERS:
                numbers[field] = number(value, *HEADER_NUMBERS[field])
            elif value is not None:
                unpack_limits(value)
            elif field not in _OPTIONAL:
                faults[field] = "it is missing"
        except ValueError as error:
            faults[field] = str(error)
    return Header(tuple(values), numbers, faults)
