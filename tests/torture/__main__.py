"""``python -m tests.torture``: torture a mount and its store, again and again, and compare; ends with the figures."""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.mounted import mounting
from tests.torture.figures import Figures
from tests.torture.runner import FAULTLESS, Ending, Torture
from tests.torture.setting import Setting, private_redis
from tests.torture.stage import Stage


def main() -> int:
    """Run rounds until the time is over; return 1 if anything was lost or torn."""
    arguments = _arguments()
    print(f"seed {arguments.seed}", flush=True)
    figures = Figures()
    try:
        with tempfile.TemporaryDirectory(prefix="vfsd-torture-") as base:
            _torture(arguments, Path(base), figures)
    except AssertionError as failure:
        print(f"LOST, torn or broken, after {figures}:", failure, *getattr(failure, "__notes__", ()), sep="\n")
        return 1
    print(f"{figures}, lost: 0")
    return 0


def _torture(arguments: argparse.Namespace, base: Path, figures: Figures) -> None:
    rng = random.Random(arguments.seed)
    with ExitStack() as stack:
        setting = stack.enter_context(_setting(arguments.store, base, rng, figures))
        stage = Stage(stack.enter_context(mounting(base)), setting.url, *setting.options)
        torture = Torture(stage, base, rng, arguments.writers, figures)
        deadline = time.monotonic() + arguments.seconds
        while time.monotonic() < deadline:
            faults = rng.choices(setting.faults, k=rng.randint(0, 3)) if setting.faults else []
            ending = rng.choice(list(Ending) if faults else FAULTLESS)
            print(*(fault.__name__ for fault in faults), ending.name.lower(), sep=", ", flush=True)
            torture.round(faults, ending)
            setting.tidy()
            print(f"  {figures}", flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32), help="default: random")
    parser.add_argument("--writers", type=int, default=4, help="processes, one of which rests (default: 4)")
    parser.add_argument("--store", default="redis", help="redis (a private server), sqlite, or a URL")
    return parser.parse_args()


@contextmanager
def _setting(kind: str, base: Path, rng: random.Random, figures: Figures) -> Iterator[Setting]:
    """Yield a store of that *kind*, and what may be done to it."""
    if kind == "redis":
        with private_redis(rng, figures) as setting:
            yield setting
    else:
        yield Setting(f"sqlite:{base / 'scopes.db'}" if kind == "sqlite" else kind)


if __name__ == "__main__":
    sys.exit(main())
