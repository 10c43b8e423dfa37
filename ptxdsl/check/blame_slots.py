"""What to say of accesses that nothing orders: which class of fault it is, by what is missing between them."""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.addresses import Part
from ptxdsl.check.blame import fault, makers, where_initialised, wrong_bytes
from ptxdsl.check.blame_groups import remedy
from ptxdsl.check.blame_stages import HELD, index_in, misplaced
from ptxdsl.check.context import Context
from ptxdsl.check.findings import Finding, Unproved
from ptxdsl.check.parts import Agent, Barrier, Touch
from ptxdsl.check.program import Step
from ptxdsl.check.states import State
from ptxdsl.check.tables import arrives_at, gates
from ptxdsl.check.threads import range_text
from ptxdsl.diagnostics import Trip, counted
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import TENSOR
from ptxdsl.protocol.model import Array
from ptxdsl.source import Span

_WAIT_WIDELY = (
    "wait with `wait_cluster`: `wait` is of its block's scope, and learns nothing of what others' threads wrote"
)
_KEEP_APART = "put `barrier()` between it and the accesses that it may meet, or make it atomic as they are"


def race(context: Context, state: State, agent: Agent, touch: Touch, missing: int) -> Exception:
    """Two accesses to the same bytes that nothing orders."""
    other = context.touch_of(missing & -missing)
    for bit, candidate in context.touches.items():
        if bit & missing and candidate.exact:
            other = candidate
            break
    if not touch.exact or not other.exact:
        return inexact(touch if not touch.exact else other)
    for one in (touch, other):
        more = surplus(context, state, one, begun=True)
        if more is not None:
            maker = context.agents[one.agent]
            return wrong_bytes(context, state, maker, more, one.site, state.phases[more.number].bytes)
    kind, message, help, second = _race_kind(context, state, agent, touch, other)
    first = other if second is touch else touch
    spans = {one.bit: one.span_over(of) for one, of in ((first, second), (second, first))}
    if kind == classes.STALE_STAGE:
        spans[second.bit] = index_in(spans[second.bit], second)
    waits = [(step.span, "waits here") for step in waited_steps(context, state, agent)]
    return fault(
        state, kind, message, spans[second.bit],
        (spans[first.bit], f"{_does(first)} by {_name(context, first)}{_when(context, first, second)}"),
        *waits, *release_notes(context, first), help=help,
        trips=_trips(context, state, agent, touch, other, spans[touch.bit], spans[other.bit]),
    )  # fmt: skip


def _trips(
    context: Context, state: State, agent: Agent, touch: Touch, other: Touch, here: Span | None, there: Span | None
) -> tuple[Trip, ...]:
    """Of an access that an agent is about to make here, and of one that was made there."""
    from ptxdsl.check.trips import of_access, of_agent  # where there is a fault

    now = of_agent(context, state, agent, touch.site, here, makers(context, touch))
    return (*now, *of_access(context, state, other, makers(context, other), there))


def _when(context: Context, first: Touch, second: Touch) -> str:
    """Of the first of two accesses, where the order of the lines does not tell that it is the first."""
    a, b = first.span_over(second), second.span_over(first)
    if first.agent != second.agent or a is None or b is None or a.source is not b.source:
        return ""
    low, high = sorted((first.site.number, second.site.number))
    steps = context.agents[first.agent].steps
    if all(type(step) is type(first.site) for step in steps[low : high + 1]):  # which of them comes first is not kept
        done = [touch for touch in context.touches.values() if touch.agent == first.agent and touch.site.number < low]
        again = a.start > b.start and b.plain in {span.plain for touch in done for span in touch.spans}
        return ", in an earlier call" if again else ""
    if first.site.number > second.site.number:
        return ", in the turn before"
    return ", in an earlier call" if a.start > b.start else ""


def inexact(touch: Touch) -> Unproved:
    assert touch.span is not None
    return Unproved(touch.span, "which bytes of shared memory this touches depends on data", _KEEP_APART)


def beyond(array: Array, at: int, part: Part, width: int, path: Any = None) -> Finding:
    """An access to bytes that an array does not have: on a path, or whatever is launched."""
    assert array.bytes is not None
    if array.base & TENSOR:
        from ptxdsl.check import tensor_bounds  # for tensor memory only

        return tensor_bounds.beyond(array, at, part.lanes or (0,), width, part.span, path)
    first, each = at + part.most - array.base, array.element
    if width == each:
        what, size = f"element {first // each}", counted(array.bytes // each, "element")
    else:
        what, size = f"bytes {first} to {first + width - 1}", counted(array.bytes, "byte")
    message = f"`{array.name}` has {size}, and this accesses {what}"
    return Finding(classes.STALE_STAGE, message, part.span, (), "keep what is accessed within the array", path)


def unordered_writes(state: State, agent: Agent, touch: Touch, first: Span, second: Span, across: bool) -> Exception:
    """Two writes of an agent's threads, with no step between them, to the same bytes."""
    kind, message, help = _own_threads(agent, touch, across)
    return fault(state, kind, message, second, (first, f"written by {range_text(touch.mask)}"), help=help)


def written_at_once(state: State, touch: Touch) -> Exception:
    """Threads that write different values to the same bytes in one execution of a statement."""
    assert touch.clash is not None
    clash, array = touch.clash, touch.array.name if touch.array is not None else "shared memory"
    return fault(
        state, classes.DATA_RACE,
        f"threads {clash.one} and {clash.other} write different values to the same bytes of `{array}` at once",
        clash.span,
        help="let one of them write: `if thread_idx.x == 0:`, or give each thread bytes of its own",
    )  # fmt: skip


def _own_threads(agent: Agent, touch: Touch, across: bool) -> tuple[str, str, str]:
    """across: whether they are of different warps."""
    array = touch.array.name if touch.array is not None else "shared memory"
    who = agent.name if "thread" in agent.name else f"threads of {agent.name}"
    keeps = "`barrier()` or a named barrier of these warps" if across else "`syncwarp()`"
    return (
        classes.DATA_RACE,
        f"{who} use the same bytes of `{array}` with nothing between that orders them",
        f"put {keeps} between the two",
    )


def surplus(context: Context, state: State, touch: Touch, *, begun: bool = False) -> Barrier | None:
    """The barrier at which a copy has brought bytes that nobody announced, so that it was not waited for.

    begun: only after a phase is complete; before that the announcement may still come.
    """
    if not touch.asynchronous or not touch.writes:
        return None
    for barrier in context.barriers:
        phase = state.phases[barrier.number]
        here = any(a == touch.agent for a, _ in barrier.copied) and (phase.begun or not begun)
        if here and isinstance(phase.bytes, int) and phase.bytes < 0:
            return barrier
    return None


def _name(context: Context, touch: Touch) -> str:
    who = makers(context, touch)
    if not touch.asynchronous or touch.site.by_warps:
        return who
    return f"the {'product' if touch.together or touch.pipe else 'copy'} that {who} started"


def _does(touch: Touch) -> str:
    return "written" if touch.writes else "read"


def _both(first: Touch, second: Touch) -> str:
    return _does(first) if first.writes == second.writes else f"{_does(first)} and {_does(second)}"


def waited_steps(context: Context, state: State, agent: Agent) -> list[Step]:
    """The waits that an agent has passed last."""
    steps = []
    for number, *_ in state.waited[agent.number].values():
        site = context.barriers[number].waiters.get(agent.number)
        if site is not None:
            steps.append(site)
    return steps[:3]


def release_notes(context: Context, touch: Touch) -> list[tuple[Span | None, str]]:
    """Where the agent of a touch arrives."""
    agent = context.agents[touch.agent]
    spans = [step.span for step in agent.steps if step.hands_over]
    return [(span, "arrives here") for span in spans[:3]]


def _race_kind(context: Context, state: State, agent: Agent, touch: Touch, other: Touch) -> tuple[str, str, str, Touch]:
    """The class, what is wrong, the repair, and which of the two is to be looked at first."""
    array = touch.array.name if touch.array is not None else "shared memory"
    writer, reader = (touch, other) if touch.writes else (other, touch)
    ahead = _ahead(context, state, touch, writer, reader)
    if other.asynchronous and not other.writes and not state.known[other.agent] & other.bit and ahead is not reader:
        return (
            classes.UNDRAINED,
            f"`{array}` is written again while the asynchronous read of it may still be under way",
            remedy(state, other, "before the stage is released")
            or "wait for the group that reads the stage before it is released",
            touch,
        )
    if (
        (other.asynchronous or other.grouped)
        and not touch.writes
        and (other.agent == agent.number or other.site.by_warps)
        and not state.known[other.agent] & other.bit
        and (repair := remedy(state, other, "first")) is not None
    ):
        what = "stores" if other.site.by_warps else "asynchronous copy"
        return (
            classes.UNDRAINED,
            f"`{array}` is used while the {what} into it may still be under way",
            repair,
            touch,
        )
    stale = misplaced(context, state, touch, other)
    if stale is not None:
        return classes.STALE_STAGE, stale.message, stale.help, stale.touch
    for one in (touch, other):
        if one.stale is not None:
            what = f"stage {one.slot} of `{array}` is {_does(one)}, but the role holds stage {one.stale}"
            return classes.STALE_STAGE, what, HELD, one
    return (*_unordered_kind(context, state, agent, touch, other), touch)


def _unordered_kind(context: Context, state: State, agent: Agent, touch: Touch, other: Touch) -> tuple[str, str, str]:
    """Of accesses each of which is where it should be."""
    array = touch.array.name if touch.array is not None else "shared memory"
    writer, reader = (touch, other) if touch.writes else (other, touch)
    by = context.agents[other.agent]
    if by is agent and touch.together != other.together:
        return (
            classes.OVERWRITTEN if touch.writes else classes.READ_BEFORE_FULL,
            f"`{array}` is {_both(other, touch)} by warps that do not wait for one another",
            "put a barrier of these warps between the two: each knows of its own part of a product alone",
        )
    both_copy = touch.grouped and other.grouped
    if by is agent and not (touch.asynchronous or other.asynchronous or both_copy):
        return _own_threads(agent, touch, bool(other.bit & touch.across))
    if not (touch.asynchronous or other.asynchronous or (_synchronises(agent) and _synchronises(by))):
        others, meet = ("warps", "barrier()") if by.cta == agent.cta else ("blocks", "cluster_sync()")
        return (
            classes.DATA_RACE,
            f"`{array}` is {_both(other, touch)} by different {others} with nothing between that orders them",
            f"put `{meet}` between the two",
        )
    return _bracket_kind(context, state, array, writer, reader, touch, other)


def _ahead(context: Context, state: State, touch: Touch, writer: Touch, reader: Touch) -> Touch | None:
    """Who has done it more often, this time included: a reader is ahead when he has done it as often."""
    if state.times is None or reader.writes:
        return None
    turns = [int(one is touch) for one in (writer, reader)]
    for bit, times in state.times.items():
        other = context.touch_of(bit)
        for i, one in enumerate((writer, reader)):
            same = (other.agent, other.writes, other.cta) == (one.agent, one.writes, one.cta)
            same = same and other.site.fills == one.site.fills  # an allocation is no turn of who fills it
            if same and other.array is one.array and other.intervals == one.intervals:
                turns[i] += times
    return writer if turns[0] > turns[1] else reader


def _synchronises(agent: Agent) -> bool:
    return any(step.waits or step.arrives for step in agent.steps)


def _waits_narrowly(context: Context, state: State, writer: Touch, reader: Touch) -> bool:
    """Whether a thread of another block has written, and the reader has waited with the scope of its own block."""
    by, agent = context.agents[writer.agent], context.agents[reader.agent]
    if writer.asynchronous or by.cta == agent.cta:
        return False
    return any(vars(step)["op"].what.scope == "cta" for step in waited_steps(context, state, agent))


def _bracket_kind(
    context: Context, state: State, array: str, writer: Touch, reader: Touch, touch: Touch, other: Touch
) -> tuple[str, str, str]:
    read = (
        classes.READ_BEFORE_FULL,
        f"`{array}` may be read before it is full",
        _WAIT_WIDELY
        if _waits_narrowly(context, state, writer, reader)
        else "the writer commits after it has written, and the reader waits for that before it reads",
    )
    over = (
        classes.OVERWRITTEN,
        f"`{array}` may be overwritten while it is still in use",
        "readers release a stage after their last read, and the writer acquires it before it writes",
    )
    if not (touch.writes and other.writes):
        ahead = _ahead(context, state, touch, writer, reader)
        if ahead is not None and not reader.free:
            return over if ahead is writer else read
        if reader.given:
            return over
        if writer.given:
            return read
        if any(arrives_at(context.agents[writer.agent], table) for table in reader.free):
            return (
                classes.WRONG_PARITY,
                f"`{array}` is read after a wait that a fresh barrier lets through",
                "a consumer's first wait is for parity 0; parity 1 passes at once",
            )
        w, r = context.agents[writer.agent], context.agents[reader.agent]
        if not gates(context, w, r):
            return read
        if not gates(context, r, w):
            return over
    if touch.agent == other.agent and all(one.writes and one.asynchronous for one in (touch, other)):
        return (
            classes.OVERWRITTEN,
            f"two copies write the same bytes of `{array}`, and the first may not have been read yet",
            "give each its own bytes: a ring takes those of all of its stages, and the next one begins behind them",
        )
    return over if touch.writes else read


def over_barrier(context: Context, state: State, agent: Agent, touch: Touch, barrier: Barrier) -> Exception:
    """Data where a barrier lives."""
    name = context.barrier_text(barrier)
    if not touch.exact:
        assert touch.span is not None
        why = f"which bytes this touches depends on data: {name} lies among them"
        return Unproved(touch.span, why, "give barriers an array of their own")
    return fault(
        state,
        classes.LIVE_REINIT,
        f"{name} lives where this {'writes' if touch.writes else 'reads'} data",
        touch.span,
        *where_initialised(barrier),
        help="end its life by `inval` before its bytes are used for something else, or give data a place of its own",
    )


def unordered_tensor(context: Context, state: State, agent: Agent, touch: Touch, bit: int) -> Exception:
    other = context.touch_of(bit)
    message = f"tensor memory is {_does(touch)} after it was {_does(other)} by others, without the fences of tcgen05"
    return fault(
        state,
        classes.PROXY_FENCE,
        message,
        touch.span_over(other),
        (other.span_over(touch), f"{_does(other)} here by {_name(context, other)}"),
        trips=_trips(context, state, agent, touch, other, touch.span_over(other), other.span_over(touch)),
        help="`tcgen05_fence_before()` before the barrier that hands it on, `tcgen05_fence_after()` behind it",
    )


def unfenced(context: Context, state: State, agent: Agent, touch: Touch, unseen: int) -> Exception:
    other = context.touch_of(unseen & -unseen)
    array = touch.array.name if touch.array is not None else "shared memory"
    if not other.exact or not touch.exact:
        assert touch.span is not None
        return Unproved(touch.span, "which bytes of shared memory this touches depends on data", _KEEP_APART)
    what = "reads" if not touch.writes else "overwrites"
    did = "wrote" if other.writes else "read"
    return fault(
        state,
        classes.PROXY_FENCE,
        f"an asynchronous operation {what} what threads {did} in `{array}`, with no proxy fence between",
        touch.span_over(other),
        (other.span_over(touch), f"{_does(other)} here by {range_text(other.mask)}"),
        *release_notes(context, other),
        trips=_trips(context, state, agent, touch, other, touch.span_over(other), other.span_over(touch)),
        help="`fence_proxy_async()` by the threads that touched it, before they arrive at the barrier",
    )
