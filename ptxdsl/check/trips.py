"""Where the roles are in their loops when a fault shows: in which trip of each loop around a place.

A state has the counters of all loops that its agents are in, and the fine search, which alone tells of faults, keeps
those of the last time that each access was made. All of it is on one path, with the decisions for which launch
parameters are looked for: so these are trips of that launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.check.context import Context
from ptxdsl.check.findings import Finding
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.program import END, Step
from ptxdsl.check.states import State
from ptxdsl.diagnostics import Trip
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Loop
from ptxdsl.record import replace
from ptxdsl.source import Span


def of_agent(
    context: Context, state: State, agent: Agent, step: Step, span: Span | None, who: str = ""
) -> tuple[Trip, ...]:
    """Of an agent that is at a step. who: those of its threads that are meant, where not all are."""
    env = state.environments[agent.number]
    return _trips(context, who or agent.name, step, span, [env[counter] for _, counter, _ in step.nesting])


def of_access(context: Context, state: State, touch: Touch, who: str, span: Span | None) -> tuple[Trip, ...]:
    """Of the last time that an access was made."""
    counters, _ = (state.trips or {}).get(touch.bit, ((), ()))
    return _trips(context, who, touch.site, span, counters)


def located(context: Context, state: State, agents: Sequence[Agent], finding: Finding) -> Finding:
    """A finding that has no trips yet with those of agents that are at one of its places."""
    if finding.trips:
        return finding
    spans = {finding.span, *(span for span, _ in finding.notes)}
    found: list[Trip] = []
    for agent in agents:
        step = agent.steps[state.places[agent.number]] if state.places[agent.number] != END else None
        if step is not None and step.span in spans:
            found += of_agent(context, state, agent, step, step.span)
    return replace(finding, trips=tuple(found))


def _trips(context: Context, who: str, step: Step, span: Span | None, counters: Sequence[Any]) -> tuple[Trip, ...]:
    """One, or none where that is not known. PTX may have more or fewer turns than the loop that it was made from."""
    if span is None or not counters or context.kernel.span.source.name.endswith(".ptx"):
        return ()
    turn_of = context.counters.turn_of
    nodes = context.kernel.nodes
    by_counter = {turn_of[node.label]: node for node in nodes if isinstance(node, Loop) and not node.once}
    loops = []
    for (_, counter, _), value in zip(step.nesting[::-1], counters[::-1], strict=True):
        loop = by_counter.get(counter)
        if loop is None or type(value) is not int:
            return ()
        loops.append((loop.span, _number(context, loop, value)))
    return (Trip(who, span, tuple(loops)),)


def _number(context: Context, loop: Loop, value: int) -> int:
    """The number of the trip, from 1, in which a loop's counter has a value."""
    if loop.range is None or loop.label in context.counters.start_of:
        return value + 1
    return (value - int(loop.range.start.value)) // loop.range.step + 1
