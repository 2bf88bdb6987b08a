"""Whatever the history of a scope, every store holds in the end what the memory store holds."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings

from tests.store.histories import Step, histories
from tests.support.stores import DurablePlace, MemoryPlace, Place, mounted, stored


async def live(place: Place, scope: str, steps: list[Step]) -> None:
    """Let *scope* live through *steps*, mounted anew wherever they say so."""
    remaining = iter(steps)
    ended = False
    while not ended:
        async with mounted(place, scope) as mount:
            ended = True
            for step in remaining:
                for _ in range(step.times):
                    await mount.commit(*step.change.ops)
                if step.remount:
                    ended = False
                    break


@given(steps=histories())
@settings(
    max_examples=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_it_holds_what_the_model_holds(
    durable: DurablePlace, new_scope: Callable[[], str], steps: list[Step]
) -> None:
    model, scope = MemoryPlace(), new_scope()
    await live(model, scope, steps)
    await live(durable, scope, steps)
    assert await stored(durable, scope) == await stored(model, scope)
