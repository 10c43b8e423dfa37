"""What to say of a state that goes wrong at one step: the class of the fault, its lines and the repair."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Fault, Finding, Unproved
from ptxdsl.check.parts import Agent, Barrier, Touch
from ptxdsl.check.program import Step
from ptxdsl.check.states import Phase, State
from ptxdsl.check.tables import gates
from ptxdsl.check.threads import Mask, range_text, whole_warps
from ptxdsl.check.values import Sum
from ptxdsl.diagnostics import Trip, counted
from ptxdsl.effects import Kind
from ptxdsl.hints import Any
from ptxdsl.protocol.model import Op
from ptxdsl.source import Span

Notes = tuple[tuple[Span, str], ...]


def fault(
    state: State,
    kind: str,
    message: str,
    span: Span | None,
    *notes: tuple[Span | None, str],
    help: str | None = None,
    trips: tuple[Trip, ...] = (),
) -> Fault:
    """A fault whose notes are those that have a place, each place once."""
    kept: list[tuple[Span, str]] = []
    for place, text in notes:
        if place is not None and place != span and all(place != other for other, _ in kept):
            kept.append((place, text))
    assert span is not None
    return Fault(Finding(kind, message, span, tuple(kept), help, state.path, trips=trips))


def makers(context: Context, touch: Touch) -> str:
    """Whose it is. What a warp does as one is told as its first lane's."""
    threads = range_text(whole_warps(touch.mask, context.every) if touch.site.by_warps else touch.mask)
    agent = context.agents[touch.agent]
    return threads if agent.alone else f"{threads} of CTA {agent.cta}"


def where_initialised(barrier: Barrier) -> list[tuple[Span | None, str]]:
    found = [
        (span, f"initialised here, with {counted(count, 'arrival')}") for span, count in reversed(barrier.initialised)
    ]
    return [*found[:1], *((span, "and here before") for span, _ in found[1:2])]


def _trips(context: Context, state: State, agent: Agent, step: Step) -> tuple[Trip, ...]:
    from ptxdsl.check.trips import of_agent  # where there is a fault

    return of_agent(context, state, agent, step, step.span)


def _verb(step: Step) -> str:
    op = getattr(step, "op", None)
    return "this" if op is None else f"`{op.called}`"


# ------------------------------------------------------------------------------------------------ initialisation


def uninitialised(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    name = context.barrier_text(barrier)
    if barrier.initialised:
        notes = where_initialised(barrier)
        message = f"{_verb(step)} uses {name}, which is not initialised then"
        return fault(
            state, classes.EARLY_USE, message, step.span, *notes,
            help="let all roles pass a `barrier()` after the initialisation, and use nothing after `inval`",
        )  # fmt: skip
    array = context.array(barrier.address)
    inits = [s.span for a in context.agents for s in a.steps if s.initialises]
    if not inits and (array is None or array.bytes is None):
        assert step.span is not None
        return Unproved(step.span, f"{name} is not initialised in this kernel", "initialise it here: `init(count)`")
    outside = array is not None and array.bytes is not None and barrier.address >= array.base + array.bytes
    text = f"{name} lies beyond the array `{array.name}`" if outside and array else f"{name} is never initialised"
    kind = classes.STALE_STAGE if outside else classes.EARLY_USE
    return fault(
        state, kind, f"{_verb(step)} uses a barrier that does not exist: {text}", step.span,
        *((span, "barriers are initialised here") for span in inits[:1]),
        help="initialise every barrier of the table, and keep indices below the number of stages",
    )  # fmt: skip


def beyond_array(context: Context, state: State, barrier: Barrier, step: Step) -> Exception | None:
    """Of a barrier that is not wholly in the array that it is counted from: what lies there is overwritten."""
    array = context.array(barrier.address)
    if array is None or array.bytes is None or barrier.address + 8 <= array.base + array.bytes:
        return None
    return fault(
        state, classes.STALE_STAGE,
        f"{_verb(step)} makes a barrier where there is none: {context.barrier_text(barrier)} lies beyond the array "
        f"`{array.name}` of {array.bytes} bytes", step.span,
        help="a table of barriers has 8 bytes for each; a pipeline of S stages needs 2 * S of them",
    )  # fmt: skip


def no_block(state: State, step: Step, rank: int, ctas: int) -> Exception:
    return fault(
        state, classes.EARLY_USE,
        f"{_verb(step)} uses a barrier of the block of rank {rank}, and the cluster has {_blocks(ctas)}", step.span,
        help="ranks are counted from 0 in each cluster",
    )  # fmt: skip


def _blocks(count: int) -> str:
    return f"{count} block{'s' if count != 1 else ''}"


def early_use(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Fault:
    return fault(
        state,
        classes.EARLY_USE,
        f"{agent.name} may come to {_verb(step)} before {context.barrier_text(barrier)} is initialised",
        step.span,
        *where_initialised(barrier),
        help="put `barrier()` (in a cluster `cluster_sync()`) between the initialisation and the roles",
    )


def unfenced_init(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    return fault(
        state,
        classes.EARLY_USE,
        f"the initialisation of {context.barrier_text(barrier)} may not be visible to what {_verb(step)} starts",
        step.span,
        *where_initialised(barrier),
        help="`fence_mbarrier_init()` after the initialisation, by the same thread, before the barrier of the block",
    )


def initialised_again(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    return fault(
        state,
        classes.LIVE_REINIT,
        f"{context.barrier_text(barrier)} is initialised again while it is in use",
        step.span,
        *where_initialised(barrier),
        help="initialise once, or call `inval` when all roles are done with it",
    )


def initialised_by_many(
    context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, mask: Mask, how: str = "initialised"
) -> Exception:
    return fault(
        state,
        classes.LIVE_REINIT,
        f"{context.barrier_text(barrier)} is {how} by {mask.bit_count()} threads ({range_text(mask)})",
        step.span,
        help=f"let each barrier be {how} by one thread: `if thread_idx.x == 0:`",
    )


def initialised_early(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    return fault(
        state,
        classes.LIVE_REINIT,
        f"{context.barrier_text(barrier)} may be initialised again before another thread has invalidated it",
        step.span,
        *where_initialised(barrier),
        help="let the thread initialise it that has invalidated it, or put `barrier()` between the two",
    )


def still_live(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, users: int) -> Exception:
    notes: list[tuple[Span | None, str]] = []
    for a, waiter in barrier.waiters.items():
        if a != agent.number:
            notes.append((waiter.span, "still in use here"))
    for a, sites in barrier.arrivals.items():
        if a != agent.number:
            notes += [(site.span, "still in use here") for site in sites]
    return fault(
        state,
        classes.LIVE_REINIT,
        f"{context.barrier_text(barrier)} is invalidated while others may still use it",
        step.span,
        *notes[:3],
        *where_initialised(barrier),
        help="put a barrier of the block between the last use and `inval`",
    )


# ------------------------------------------------------------------------------------------------------ arrivals


def too_many(
    context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, count: int, phase: Phase
) -> Exception:
    before = phase.expected - phase.pending
    others = f" after {counted(before, 'arrival')} of others" if before else ""
    return fault(
        state,
        classes.WRONG_COUNT,
        f"{context.barrier_text(barrier)} is initialised for {counted(phase.expected, 'arrival')} per phase, but "
        f"{agent.does('makes')} {count} at once{others}",
        step.span,
        *where_initialised(barrier),
        *arrival_notes(barrier, step),
        *other_sites(context, step),
        help=f"count every thread that arrives: init({shares(barrier)}), or let one lane arrive",
    )


def shares(barrier: Barrier) -> int:
    """Arrivals a phase if each agent arrives at one of its sites."""
    return sum(max(sites.values()) for sites in barrier.arrivals.values() if sites)


def arrival_notes(barrier: Barrier, but: Step | None = None) -> list[tuple[Span | None, str]]:
    at: dict[Span | None, int] = {}
    for sites in barrier.arrivals.values():
        for site, count in sites.items():
            if site is not but:
                at[site.span] = at.get(site.span, 0) + count
    return [(span, f"{counted(count, 'arrival')} here") for span, count in at.items()][:4]


def arrivers_wait(context: Context, state: State, barrier: Barrier) -> list[tuple[Span | None, str]]:
    """What those who arrive at a barrier have waited for before."""
    notes: list[tuple[Span | None, str]] = []
    for agent in map(context.agent, barrier.arrivals):
        for number, *_ in state.waited[agent.number].values():
            site = context.barriers[number].waiters.get(agent.number)
            if site is not None:
                notes.append((site.span, f"{agent.does('waits')} here before arriving"))
    return notes[:3]


def other_sites(context: Context, step: Step) -> list[tuple[Span | None, str]]:
    """All places where somebody arrives at barriers of the same table."""
    return [
        (site.span, f"{a.does('arrives')} here")
        for a in context.agents
        for site in a.steps
        if site.hands_over and site.root == step.root and site is not step
    ][:5]


def wait_notes(barrier: Barrier, but: Step | None = None) -> list[tuple[Span | None, str]]:
    return [(site.span, "waited for here") for site in barrier.waiters.values() if site is not but][:3]


def arrives_early(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    """An arrival that may fall into the phase before the one that it is for."""
    phase = state.phases[barrier.number]
    share = shares(barrier)
    name = context.barrier_text(barrier)
    if share > phase.expected:
        return fault(
            state,
            classes.WRONG_COUNT,
            f"{name} is initialised for {counted(phase.expected, 'arrival')} per phase but receives {share}",
            step.span,
            *where_initialised(barrier),
            *arrival_notes(barrier, step),
            *other_sites(context, step),
            help=f"init({share}), or fewer threads that arrive",
            trips=_trips(context, state, agent, step),
        )
    waiters = [a for a in barrier.waiters if a != agent.number]
    kind = classes.WRONG_PARITY
    op = getattr(step, "op", None)
    announces = isinstance(op, Op) and op.kind is Kind.BAR_EXPECT
    if waiters and not announces and not any(gates(context, context.agents[w], agent) for w in waiters):
        kind = classes.OVERWRITTEN
    return fault(
        state,
        kind,
        f"{_verb(step)} may arrive at {name} while the phase before is not complete",
        step.span,
        *wait_notes(barrier),
        *where_initialised(barrier),
        *other_sites(context, step),
        help="wait for the stage (acquire, wait) before each arrival, for its own phase",
        trips=_trips(context, state, agent, step),
    )


def runs_ahead(context: Context, state: State, barrier: Barrier, late: int) -> Exception:
    """A phase that completes though a waiter may not have seen the one before."""
    waiter = next(a for a, bit in barrier.waits.items() if bit & late)
    site = barrier.waiters[waiter]
    arriving = [a for a in barrier.arrivals if a != waiter]
    held_back = any(gates(context, context.agents[waiter], context.agent(a)) for a in arriving)
    name = context.barrier_text(barrier)
    span = next((s.span for a in arriving for s in barrier.arrivals[a]), site.span)
    kind = classes.WRONG_PARITY if held_back else classes.OVERWRITTEN
    if shares(barrier) > state.phases[barrier.number].expected:
        kind = classes.WRONG_COUNT
    parity = getattr(getattr(site, "op", None), "parity", None)
    if not state.phases[barrier.number].begun and parity is not None and parity.op == "const" and parity.value:
        return fault(
            state, classes.WRONG_PARITY,
            f"this waits for parity 1, which {name} lets through before any of its phases is complete", site.span,
            *arrival_notes(barrier), *where_initialised(barrier),
            help="the first phase has parity 0: wait for that",
        )  # fmt: skip
    return fault(
        state,
        kind,
        f"{name} may complete two phases before {context.agents[waiter].does('has')} seen the first",
        span,
        (site.span, "this wait may then be for the wrong phase"),
        *where_initialised(barrier),
        help="wait until the stage was given back (acquire) before it is committed again",
    )


def looks_early(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Exception:
    name = context.barrier_text(barrier)
    help = "wait for each phase in turn, with the parity of that phase: a producer starts with 1, a consumer with 0"
    if getattr(getattr(step, "op", None), "pipeline", ""):
        help = f"{help}; what has no `commit` or `release` in a turn, as a stage that a copy fills, has `step()`"
    return fault(
        state,
        classes.WRONG_PARITY,
        f"{_verb(step)} may be let through by an earlier phase of {name}",
        step.span,
        *arrival_notes(barrier),
        *where_initialised(barrier),
        *arrivers_wait(context, state, barrier),
        help=help,
    )


def no_parity(state: State, step: Step, parity: int) -> Fault:
    return fault(
        state,
        classes.WRONG_PARITY,
        f"{_verb(step)} gets {parity} for a parity, which is 0 or 1",
        step.span,
        help="take the lowest bit of the phase's number last: `((i // STAGES) ^ 1) & 1`, for `&` binds more than `^`",
    )


def waits_again(context: Context, state: State, agent: Agent, barrier: Barrier, step: Step) -> Fault:
    return fault(
        state,
        classes.WRONG_PARITY,
        f"{_verb(step)} is let through by the phase of {context.barrier_text(barrier)} for which {agent.does('has')} "
        "waited before, though it has released the stage since",
        step.span,
        *arrival_notes(barrier),
        *where_initialised(barrier),
        help="carry a pipeline's state on from loop to loop, or go round all of its stages an even number of times",
        trips=_trips(context, state, agent, step),
    )


def wrong_bytes(
    context: Context, state: State, agent: Agent, barrier: Barrier, step: Step, outstanding: Any
) -> Exception:
    notes = [(span, "bytes announced here") for _, span in barrier.announced]
    notes += [(span, "copied here") for _, span in barrier.copied]
    name = context.barrier_text(barrier)
    if isinstance(outstanding, int):
        message = f"copies bring {-outstanding} bytes more to {name} than were announced"
    else:
        ways = _ways(outstanding)
        by = " or ".join(str(abs(way)) for way in ways if way) if ways else repr(outstanding)
        message = f"the bytes announced at {name} and those copied {'may ' if 0 in ways else ''}differ by {by}"
    return fault(
        state, classes.BYTE_MISMATCH, message, step.span, *notes, *where_initialised(barrier),
        help="announce (expect_bytes) exactly the bytes of all copies that complete on the barrier in one phase",
    )  # fmt: skip


def _ways(value: Any) -> list[int]:
    """The numbers that a sum can be whose only unknown part is a choice between numbers; empty of others."""
    (atom, factor), *more = value.terms if isinstance(value, Sum) else ((None, 0),)
    if atom is None or more or atom.op != "select" or not all(isinstance(way, int) for way in atom.args[1:]):
        return []
    return sorted({value.constant + factor * way for way in atom.args[1:]})
