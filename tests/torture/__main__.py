"""``python -m tests.torture``: kill the daemon under load, again and again, and compare; ends with the figures."""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.mounted import mounting
from tests.support.servers import RedisServer, redis_program
from tests.torture.runner import Torture


def main() -> int:
    """Run rounds until the time is over; return 1 if anything was lost or torn."""
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vfsd-torture-")))
        url = stack.enter_context(_store(arguments.store, base))
        mounted = stack.enter_context(mounting(base))(url, "--xattr")
        torture = Torture(mounted, base, arguments.seed, arguments.writers)
        deadline = time.monotonic() + arguments.seconds
        try:
            while time.monotonic() < deadline:
                torture.round()
                print(f"{torture.figures}, 0 lost", flush=True)
        except AssertionError as failure:
            print(f"LOST or torn, after {torture.figures}:\n{failure}", file=sys.stderr)
            return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="default: random")
    parser.add_argument("--writers", type=int, default=4, help="processes, one of which rests (default: 4)")
    parser.add_argument("--store", default="redis", help="redis (a private server), sqlite, or a URL")
    return parser.parse_args()


@contextmanager
def _store(kind: str, base: Path) -> Iterator[str]:
    """Yield the URL of a store of that *kind*."""
    if kind == "redis":
        with RedisServer(redis_program()) as server:
            yield server.url
    else:
        yield f"sqlite:{base / 'scopes.db'}" if kind == "sqlite" else kind


if __name__ == "__main__":
    sys.exit(main())
