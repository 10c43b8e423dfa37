"""Which stage a role holds: between the wait that gave it and the arrival that hands it on. For messages alone."""

from __future__ import annotations

from ptxdsl.check.context import Context
from ptxdsl.check.parts import Agent, Barrier, Touch
from ptxdsl.check.states import State

_BARRIER = 8


def waited(context: Context, state: State, agent: Agent, table: int, barrier: Barrier, free: bool) -> None:
    """An agent holds a stage. table: the address of the site's first barrier. free: it did not have to wait."""
    place = barrier.place
    if place is None:
        stage: int | None = (barrier.address - table) // _BARRIER
    else:
        stage = place[2] if place[0].stages > 1 else None
        free = free and place[1] == "producer_mbar"  # a producer's first waits are meant to be
    state.waited[agent.number][table] = (barrier.number, stage, free, False)


def arrived(context: Context, state: State, agent: Agent, table: int, barrier: Barrier) -> None:
    """It gives the stage of that number away (the last sub-stage counts)."""
    place = barrier.place
    if place is None:
        stage: int | None = (barrier.address - table) // _BARRIER
    elif place[4] > 1 and place[3] != place[4] - 1:
        return
    else:
        stage = place[2] if place[0].stages > 1 else None
    held = state.waited[agent.number]
    for other, (number, at, free, given) in held.items():
        if not given and (at == stage or at is None or stage is None):
            held[other] = (number, at, free, True)


def describe(context: Context, state: State, agent: Agent, touch: Touch) -> None:
    """Notes in which bracket a touch lies."""
    tables = state.waited[agent.number]
    held = tables.values()
    if not held:
        return
    stages = [stage for _, stage, _, _ in held if stage is not None]
    if touch.slot is not None and stages and touch.slot not in stages:
        touch.stale = stages[-1]
    touch.given = all(given for _, _, _, given in held)
    touch.free = tuple(table for table, (_, _, free, given) in tables.items() if free and not given)
