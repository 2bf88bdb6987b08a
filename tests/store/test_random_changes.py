"""After any sequence of changes, every durable store has the same records as the memory store."""

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings

from tests.store.random_changes import Step, random_steps
from tests.support.stores import Backend, DurableBackend, MemoryBackend, claimed, stored


async def run_steps(backend: Backend, scope: str, steps: list[Step]) -> None:
    """Commit *steps* to *scope*, and claim it again after each step that says so."""
    remaining = iter(steps)
    ended = False
    while not ended:
        async with claimed(backend, scope) as writer:
            ended = True
            for step in remaining:
                for _ in range(step.times):
                    await writer.commit(*step.change.ops)
                if step.reclaim:
                    ended = False
                    break


@given(steps=random_steps())
@settings(
    max_examples=25,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
async def test_a_durable_store_has_the_same_records_as_the_memory_store(
    durable_backend: DurableBackend, new_scope: Callable[[], str], steps: list[Step]
) -> None:
    model, scope = MemoryBackend(), new_scope()
    await run_steps(model, scope, steps)
    await run_steps(durable_backend, scope, steps)
    assert await stored(durable_backend, scope) == await stored(model, scope)
