"""Roles that wait forever: who waits for whom, and what is missing."""

from __future__ import annotations

from collections.abc import Set

from ptxdsl.check import classes
from ptxdsl.check.barriers import Arrive, OnBarrier, Wait
from ptxdsl.check.blame import arrival_notes, fault, looks_early, shares, where_initialised
from ptxdsl.check.collectives import ClusterWait, Meet, WarpSync
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Fault, Unproved
from ptxdsl.check.parts import Agent, Barrier
from ptxdsl.check.program import END
from ptxdsl.check.states import LEFT, State
from ptxdsl.check.threads import range_text, whole_warps
from ptxdsl.check.warpgroups import left_alone
from ptxdsl.source import Span

Note = tuple[Span | None, str]


def stuck(context: Context, state: State, going_round: Set[int]) -> Exception:
    """The fault of a state in which nobody can go on though not all are at their end; some may go round for ever."""
    if going_round:
        return _round(context, state, context.agents[min(going_round)])
    waiting = {a.number: a for a in context.agents if state.places[a.number] != END}
    alone = left_alone(context, state, waiting)
    if alone is not None:
        return alone
    on_barriers = {n: a for n, a in waiting.items() if isinstance(a.steps[state.places[n]], Wait)}
    for agent in on_barriers.values():
        barrier = _barrier(context, state, agent)
        phase = state.phases[barrier.number]
        unannounced = barrier.copied and not barrier.announced  # copies alone, and the arrival with them is missing
        if (phase.pending == 0 or unannounced) and phase.bytes != 0:
            return _bytes(context, state, agent, barrier)
        if not state.known[agent.number] & barrier.last:
            return looks_early(context, state, agent, barrier, agent.steps[state.places[agent.number]])
    for agent in on_barriers.values():
        barrier = _barrier(context, state, agent)
        phase = state.phases[barrier.number]
        arrived = phase.expected - phase.pending
        share = max(shares(barrier), _possible(context, state, barrier))
        if share and share != phase.expected and (arrived or share < phase.expected):
            return _count(context, state, agent, barrier, share)
    if not on_barriers:
        return _meeting(context, state, waiting)
    edges = {n: _who(context, state, a, _barrier(context, state, a)) for n, a in on_barriers.items()}
    cycle = _cycle(edges, on_barriers)
    if cycle:
        return _cyclic(context, state, [context.agents[n] for n in cycle])
    for number, agent in on_barriers.items():
        if not any(other in waiting for other in edges[number]):
            return _missing(context, state, agent, _barrier(context, state, agent))
    at_meetings = [n for n in waiting if n not in on_barriers]
    if at_meetings:
        return _cyclic(context, state, [waiting[n] for n in (*on_barriers, *at_meetings)][:4])
    agent = next(iter(on_barriers.values()))
    return _missing(context, state, agent, _barrier(context, state, agent))


def _round(context: Context, state: State, agent: Agent) -> Exception:
    """A role goes round without anything to be decided or to come: each turn's waits are for what was there before."""
    around = agent.steps[state.places[agent.number]].nesting
    for step in agent.steps:
        if isinstance(step, Wait) and step.nesting[: len(around)] == around:
            barrier, _ = step.targets(context, state, agent)[0]
            return fault(
                state, classes.WRONG_PARITY,
                f"{agent.does('goes')} round for ever: each turn waits for the same phase of "
                f"{context.barrier_text(barrier)}", step.span, *arrival_notes(barrier),
                help="step to the next stage once a turn",
            )  # fmt: skip
    return Unproved(
        context.kernel.span,
        f"{agent.does('goes')} round without end",
        "let the loop end, or wait for others in each turn",
    )


def _barrier(context: Context, state: State, agent: Agent) -> Barrier:
    step = agent.steps[state.places[agent.number]]
    assert isinstance(step, Wait)
    return step.targets(context, state, agent)[0][0]


def _sites(context: Context, state: State, agent: Agent) -> list[tuple[OnBarrier, set[int]]]:
    """The agent's arriving sites with the barriers that they work on as its variables are now."""
    found = []
    for step in agent.steps:
        if isinstance(step, OnBarrier) and step.arrives:
            found.append((step, _targets(context, state, agent, step)))
    return found


def _targets(context: Context, state: State, agent: Agent, site: OnBarrier) -> set[int]:
    """None where its variables are of a loop that the agent is not in, or say no barrier."""
    env = state.environments[agent.number]
    if any(env[v] is None or env[v] is LEFT for v in site.variables):
        return set()
    try:
        return {barrier.number for barrier, _ in site.targets(context, state, agent)}
    except (Fault, Unproved):
        return set()


def _table(context: Context, barrier: Barrier) -> tuple[object, ...]:
    place = barrier.place
    if place is not None:
        pipeline, side, _, sub, _ = place
        return side, pipeline.full.value if side == "producer_mbar" else pipeline.empty.value, sub
    return (barrier.address,)


def _who(context: Context, state: State, agent: Agent, barrier: Barrier) -> list[int]:
    """The agents that arrive at a barrier, or at others of its table."""
    table = _table(context, barrier)
    found = []
    for other in context.agents:
        if other is agent:
            continue
        if other.number in barrier.arrivals:
            found.append(other.number)
            continue
        for _, targets in _sites(context, state, other):
            if any(_table(context, context.barriers[n]) == table for n in targets):
                found.append(other.number)
                break
    return found


def _possible(context: Context, state: State, barrier: Barrier) -> int:
    """Arrivals a phase that the sites in the programs could make, each agent at one of its sites."""
    total = 0
    for agent in context.agents:
        counts = [
            site.acting.bit_count()
            for site, targets in _sites(context, state, agent)
            if barrier.number in targets and isinstance(site, Arrive) and site.op.count is None
        ]
        total += max(counts, default=0)
    return total


def _cycle(edges: dict[int, list[int]], waiting: dict[int, Agent]) -> list[int]:
    """Agents each of which waits for an arrival of the next one, and the last for one of the first."""
    for start in edges:
        path: list[int] = []
        at = start
        while at in edges and at not in path:
            path.append(at)
            following = [n for n in edges[at] if n in waiting]
            if not following:
                break
            at = following[0]
        else:
            if at in path:
                return path[path.index(at) :]
    return []


def _waits_here(context: Context, state: State, agent: Agent) -> str:
    step = agent.steps[state.places[agent.number]]
    if isinstance(step, Wait):
        return f"{agent.does('waits')} here for {context.barrier_text(_barrier(context, state, agent))}"
    return f"{agent.does('waits')} here"


def _for_full(context: Context, state: State, agent: Agent) -> bool:
    """Whether an agent waits for a stage to be filled: the consumer's line is the one to look at first."""
    if not isinstance(agent.steps[state.places[agent.number]], Wait):
        return False
    place = _barrier(context, state, agent).place
    return place is not None and place[1] == "producer_mbar"


def _cyclic(context: Context, state: State, agents: list[Agent]) -> Exception:
    agents = sorted(agents, key=lambda agent: not _for_full(context, state, agent))
    spans = [(agent.steps[state.places[agent.number]].span, _waits_here(context, state, agent)) for agent in agents]
    notes: list[Note] = list(spans[1:])
    for agent in agents:
        step = agent.steps[state.places[agent.number]]
        if isinstance(step, Wait):
            barrier = _barrier(context, state, agent)
            for other in agents:
                for site, targets in _sites(context, state, other):
                    if other is not agent and barrier.number in targets:
                        notes.append((site.span, f"{other.name} would arrive at {context.barrier_text(barrier)} here"))
    names = [agent.name for agent in agents]
    listed = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
    each = "each other" if len(names) == 2 else "one another"
    text = f"{listed} wait for {each}" if len(names) > 1 else f"{listed} waits for itself"
    return fault(
        state, classes.CYCLIC_WAIT, f"deadlock: {text}", spans[0][0], *notes,
        help=_first_wait(context, state, agents)
        or "let one of them arrive before it waits, or wait for the barriers in the same order",
    )  # fmt: skip


def _first_wait(context: Context, state: State, agents: list[Agent]) -> str | None:
    """What to do where all wait for a first phase, with barriers by hand: who fills finds his slot free then."""
    for agent in agents:
        step = agent.steps[state.places[agent.number]]
        if not isinstance(step, Wait) or step.op.pipeline or state.phases[_barrier(context, state, agent).number].begun:
            return None
    fillers = [agent for agent in agents if any(getattr(step, "writes", False) for step in agent.steps)]
    if len(fillers) != 1:
        return None
    name = context.barrier_text(_barrier(context, state, fillers[0]))
    return (
        f"let the parity with which {fillers[0].does('waits')} for {name} begin with 1: a slot is free at first, and a "
        "fresh barrier lets a wait for parity 1 through"
    )


def _missing(context: Context, state: State, agent: Agent, barrier: Barrier) -> Exception:
    step = agent.steps[state.places[agent.number]]
    name = context.barrier_text(barrier)
    notes: list[Note] = arrival_notes(barrier)
    for other in context.agents:
        if other is agent:
            continue
        for site, targets in _sites(context, state, other):
            if any(_related(context, context.barriers[n], barrier) for n in targets):
                notes.append((site.span, f"{other.does('arrives')} here"))
        place = state.places[other.number]
        if place != END and other.steps[place].span is not None and isinstance(other.steps[place], Wait):
            notes.append((other.steps[place].span, _waits_here(context, state, other)))
    who = "nobody arrives at it" if not barrier.arrivals else "an arrival is missing"
    return fault(
        state, classes.MISSING_ARRIVE, f"deadlock: {agent.does('waits')} for {name} forever: {who}", step.span,
        *notes, *where_initialised(barrier),
        help="arrive (commit, release) once a stage on every path, and let both roles make the same number of turns",
    )  # fmt: skip


def _related(context: Context, one: Barrier, other: Barrier) -> bool:
    """Whether two barriers are of the same side of a pipeline, or one."""
    a, b = one.place, other.place
    if a is None or b is None:
        return one is other
    return a[1] == b[1] and a[0].full is b[0].full


def _count(context: Context, state: State, agent: Agent, barrier: Barrier, share: int) -> Exception:
    phase = state.phases[barrier.number]
    name = context.barrier_text(barrier)
    span = barrier.initialised[-1][0] if barrier.initialised else agent.steps[state.places[agent.number]].span
    here = agent.steps[state.places[agent.number]].span
    return fault(
        state, classes.WRONG_COUNT,
        f"{name} is initialised for {phase.expected} arrivals per phase but receives {share}", span,
        *arrival_notes(barrier), (here, f"{agent.does('waits')} here forever"),
        help=f"count every thread that arrives: init({share})",
    )  # fmt: skip


def _bytes(context: Context, state: State, agent: Agent, barrier: Barrier) -> Exception:
    phase = state.phases[barrier.number]
    name = context.barrier_text(barrier)
    notes: list[Note] = [(span, "bytes announced here") for _, span in barrier.announced]
    notes += [(span, "copied here") for _, span in barrier.copied]
    here = agent.steps[state.places[agent.number]].span
    span = notes[0][0] if notes else here
    missing = f"waits for {phase.bytes!r} bytes that no copy brings"
    if isinstance(phase.bytes, int) and phase.bytes < 0:
        missing = f"gets {-phase.bytes} bytes that nobody announces there"
    return fault(
        state, classes.BYTE_MISMATCH,
        f"{name}{'' if agent.alone else f' of CTA {barrier.cta}'} {missing}", span, *notes,
        (here, f"{agent.does('waits')} here forever"), *where_initialised(barrier),
        help="announce (expect_bytes) exactly the bytes of all copies that complete on the barrier in one phase",
    )  # fmt: skip


def _meeting(context: Context, state: State, waiting: dict[int, Agent]) -> Exception:
    """Some are at a barrier of threads to which others do not come."""
    agents = list(waiting.values())
    agent = agents[0]
    step = agent.steps[state.places[agent.number]]
    gone = [a for a in context.agents if a.number not in waiting]
    notes: list[Note] = [
        (other.steps[state.places[other.number]].span, f"{other.does('waits')} here") for other in agents[1:]
    ]
    if isinstance(step, Meet):
        for other in context.agents:
            for site in other.steps:
                if isinstance(site, Meet) and other.cta == agent.cta and len(notes) < 10:
                    notes.append((site.span, f"{other.does('comes')} to `{site.op.called}` here"))
    what = "the barrier of the cluster" if isinstance(step, ClusterWait) else "a barrier"
    if isinstance(step, (Meet, WarpSync)):
        what = f"`{step.op.called}`"
    if passed_by := _passed_by(context, state, agents, gone):
        return fault(
            state, classes.DIVERGENT, f"{what} {passed_by}", step.span, *notes,
            help="let all threads come to it, and leave in the branch what only some of them do",
        )  # fmt: skip
    missing = f"; {gone[0].does('has')} ended without coming to it" if gone else ": not all of its threads come to it"
    if isinstance(step, Meet):
        arrived, needed = step.come(context, state, agent)
        missing = f": {arrived} of its {needed} threads come to it{missing if gone else ''}"
    return fault(
        state, classes.DIVERGENT, f"deadlock: {agent.does('waits')} at {what}{missing}", step.span, *notes,
        help="every thread that a barrier counts must come to it: keep it out of branches that some do not take",
    )  # fmt: skip


def _passed_by(context: Context, state: State, agents: list[Agent], gone: list[Agent]) -> str | None:
    """What is wrong with a barrier for all threads to which only such do not come that have ended. It is no deadlock,
    since it does not wait for threads that have exited (PTX ISA, ``exit``)."""
    steps = [agent.steps[state.places[agent.number]] for agent in agents]
    for agent, step in zip(agents, steps, strict=True):
        if isinstance(step, Meet):
            here = sum(other.mask.bit_count() for other in agents if other.cta == agent.cta)
            if step.count is not None or step.come(context, state, agent) != (here, context.size):
                return None
        elif not isinstance(step, ClusterWait):
            return None
    if isinstance(steps[0], ClusterWait):
        _, _, who = state.meetings[context.meeting("cluster", state).number]
        gone = [a for a in gone if not who >> a.number & 1]
    for other in gone:
        come = sum(agent.mask for agent in agents if agent.cta == other.cta)
        alone = come & whole_warps(other.mask, context.every)
        if alone:
            comes = "comes" if alone.bit_count() == 1 else "come"
            return f"wants whole warps, but {range_text(alone)} {comes} to it without the rest of theirs"
    if not gone:
        return None
    return f"wants all threads, but {gone[0].does('ends')} without coming to it: nothing orders what is done there"
