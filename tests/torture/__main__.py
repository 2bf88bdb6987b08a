"""``python -m tests.torture``: run random operations during faults, and compare mount and store after each round."""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.mounted import mounting
from tests.torture.counts import Counts
from tests.torture.runner import ENDINGS_WITHOUT_FAULTS, Ending, Torture
from tests.torture.scope_mounts import ScopeMounts
from tests.torture.store_under_test import StoreUnderTest, private_redis


def main() -> int:
    """Run rounds until the time is over, and print the counts. Return 1 if anything was lost or is incomplete."""
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    counts = Counts()
    try:
        with tempfile.TemporaryDirectory(prefix="vfsd-torture-") as base:
            _torture(arguments, Path(base), counts)
    except AssertionError as failure:
        print(f"LOST or incomplete, after {counts}:", failure, *getattr(failure, "__notes__", ()), sep="\n")
        return 1
    print(f"{counts}, lost: 0")
    return 0


def _torture(arguments: argparse.Namespace, base: Path, counts: Counts) -> None:
    rng = random.Random(arguments.seed)
    with ExitStack() as stack:
        store = stack.enter_context(_store_under_test(arguments.store, base, rng, counts))
        mounts = ScopeMounts(stack.enter_context(mounting(base)), store.url, *store.options)
        torture = Torture(mounts, base, rng, arguments.writers, counts)
        deadline = time.monotonic() + arguments.seconds
        while time.monotonic() < deadline:
            faults = rng.choices(store.faults, k=rng.randint(0, 3)) if store.faults else []
            ending = rng.choice(list(Ending) if faults else ENDINGS_WITHOUT_FAULTS)
            print(*(fault.__name__ for fault in faults), ending.name.lower(), sep=", ", flush=True)
            torture.round(faults, ending)
            store.forget_traffic()
            print(f"  {counts}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to run (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="default: random")
    parser.add_argument(
        "--writers", type=int, default=4, help="processes; one of them pauses in each round (default: 4)"
    )
    parser.add_argument("--store", default="redis", help="redis (a private server), sqlite, or a URL")
    return parser.parse_args()


@contextmanager
def _store_under_test(kind: str, base: Path, rng: random.Random, counts: Counts) -> Iterator[StoreUnderTest]:
    """Yield the store of that *kind*, with the faults that it can have."""
    if kind == "redis":
        with private_redis(rng, counts) as store:
            yield store
    else:
        yield StoreUnderTest(f"sqlite:{base / 'scopes.db'}" if kind == "sqlite" else kind)


if __name__ == "__main__":
    sys.exit(main())
