"""Tensor memory: who has it, and the fences between what the tensor cores do and what other threads know of it.

An allocation is taken and given back by whole warps, which need not be the same. Work of one thread's tensor cores is
done in its order. Of what another thread's work has touched one knows by its commit, or by a ``tcgen05.fence`` on both
sides of the barrier that was passed: *before* it those who touched it, *after* it those who touch it next.
"""

from __future__ import annotations

from ptxdsl.check import classes
from ptxdsl.check.addresses import Part
from ptxdsl.check.blame import fault
from ptxdsl.check.collectives import WarpSync
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.groups import Start, WaitGroup
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.program import ASK, Step
from ptxdsl.check.ranks import is_pairs
from ptxdsl.check.slots import check, happen, touches_of
from ptxdsl.check.states import State
from ptxdsl.check.supposed import NO_SUM
from ptxdsl.check.tensor_bounds import check_alone, check_given_back, check_quarters, check_room
from ptxdsl.check.threads import Mask
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import Op

_TAKEN, _GIVEN, _RELINQUISHED = 1, 2, 3
_PERMIT = -1  # in the place of an allocation's array: the block's right to allocate
_PIPE = "tcgen05"


def tensor_steps(op: Op, mask: Mask, expressions: Expressions, context: Context, agent: Agent) -> list[Step] | None:
    """The steps of an operation on tensor memory, each with its threads; None of another operation."""
    if op.what.space != "tensor":
        return None
    if op.kind in (Kind.ASYNC_MMA, Kind.ASYNC_COPY):
        return [_masked(Product(op, mask, expressions, context), mask)]
    if op.kind is Kind.FENCE:
        return [_masked(TensorFence(op), mask)]
    if "relinquish" in op.name:
        return [_masked(WarpSync(op, mask, expressions), mask), _masked(Relinquishment(op), mask)]
    # The whole warp comes; what it does is told as its first lane's.
    steps: list[Step] = [_masked(WarpSync(op, mask, expressions), mask)]
    first = mask & expressions.block.leaders
    mechanism = op.what.completes_on or ""
    if op.kind is Kind.WAIT_GROUP:
        wait = WaitGroup(op, mechanism, expressions)
        wait.all = True  # there are no groups: it waits for all that the thread has started
        steps.append(_masked(wait, mask))
    elif not first:
        pass
    elif "alloc" in op.name:
        steps.append(_masked(Allocation(op, first, expressions, "dealloc" in op.name), first))
    else:
        steps.append(_masked(Movement(op, first, expressions, mechanism, context), first))
    return steps


def _masked(step: Step, mask: Mask) -> Step:
    step.mask = mask
    return step


def _has(context: Context, state: State, agent: Agent, step: Step, array: int, cta: int) -> None:
    """Raises Fault where an allocation is not there."""
    if context.blocks.count > 1:
        cta = 0  # what the followed block has, all have
    if state.tensor.get((array, cta)) == _TAKEN:
        return
    gone = state.tensor.get((array, cta)) == _GIVEN
    raise fault(
        state,
        classes.OVERWRITTEN if gone else classes.READ_BEFORE_FULL,
        f"tensor memory is used {'after it was given back' if gone else 'before it is allocated'}",
        step.span,
        *((s.span, "given back here" if s.frees else "allocated here") for s in _allocations(context)),
        help="give it back after a barrier behind its last use" if gone else "put `barrier()` behind its allocation",
    )


def _allocations(context: Context) -> list[Allocation]:
    return [step for agent in context.agents for step in agent.steps if isinstance(step, Allocation)][:3]


class Product(Start):
    """A product or a copy of the tensor cores; with a pair of CTAs in both of them."""

    def __init__(self, op: Op, mask: Mask, expressions: Expressions, context: Context) -> None:
        super().__init__(op, mask, expressions, _PIPE, context.boxes)
        self.pair = is_pairs(op)
        self.pipe = True
        self.grouped = False
        self.adds = expressions.function(op.adds) if op.adds is not None and _may_add(op) else None

    def ctas(self, agent: Agent) -> tuple[int, ...]:
        return (agent.cta & ~1, agent.cta | 1) if self.pair else (agent.cta,)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        for touch in self.touches(context, state, agent):
            if touch.tensor and touch.array is not None:
                _has(context, state, agent, self, touch.array.base, touch.cta)
                if touch.writes and context.races and self._adds(context, state, agent, touch):
                    return ASK
        return super().run(context, state, agent)

    def _adds(self, context: Context, state: State, agent: Agent, touch: Touch) -> bool:
        """Tells of a product that adds to what nobody has written; whether it must be decided first if it adds."""
        if self.adds is None or state.fill.is_begun(context, touch):
            return False
        adds = self.adds(state.environments[agent.number])
        settled = self.settle(context, state, agent, adds)
        if settled is None:
            context.supposed.note(NO_SUM, self.span)
        elif not isinstance(settled, int):
            context.asked = (self, agent, adds, settled)
            return True
        elif settled:
            state.fill.add(context, state, touch)
        return False

    def takes(self, op: Op, expressions: Expressions, context: Context) -> bool:
        """Not what adds to something else: the first of a step speaks for all."""
        return (not _may_add(op) or op.writes == self.op.writes) and super().takes(op, expressions, context)

    def is_under_way(self, state: State, agent: Agent, bits: int) -> None:
        """There are no groups: ``Agent.products``."""


def _may_add(op: Op) -> bool:
    return op.adds is not None and not (op.adds.op == "const" and not op.adds.value)


class Movement(Start):
    """tcgen05.ld or .st of whole warps."""

    by_warps = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions, mechanism: str, context: Context) -> None:
        super().__init__(op, mask, expressions, mechanism, context.boxes)
        self.asynchronous = True
        self.reached: list[Touch] = []  # those that go to lanes which their warps reach

    def run(self, context: Context, state: State, agent: Agent) -> int:
        for touch in self.touches(context, state, agent):
            if touch.array is not None:
                _has(context, state, agent, self, touch.array.base, touch.cta)
                if touch not in self.reached:
                    check_quarters(touch)
                    self.reached.append(touch)
        return super().run(context, state, agent)


class Allocation(Step):
    """tcgen05.alloc, which waits until there is room, or .dealloc."""

    fills = False
    by_warps = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions, frees: bool) -> None:
        super().__init__(op.span)
        self.frees = frees
        self.acting = mask
        self.parts = [Part(place, op.span, mask, expressions) for place in op.writes]
        self.variables = tuple(sorted(frozenset[int]().union(*(part.variables for part in self.parts))))
        self._touches: dict[tuple[object, ...], list[Touch]] = {}

    def touches(self, context: Context, state: State, agent: Agent) -> list[Touch]:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        found = self._touches.get(key)
        if found is None:
            found = touches_of(self, self.parts, context, agent, env, writes=True, mask=self.acting)
            self._touches[key] = found
        return found

    def run(self, context: Context, state: State, agent: Agent) -> int:
        if not self._touches:
            check_room(context, self.span)
            check_alone(state, self.acting, self.frees, self.span)
        for touch in self.touches(context, state, agent):
            assert touch.array is not None
            key = touch.array.base, touch.cta
            if self.frees:
                _has(context, state, agent, self, *key)
                check_given_back(context, state, touch, self.span)
            elif state.tensor.get(key) == _TAKEN:
                message = "tensor memory is allocated again before it was given back"
                raise fault(state, classes.LIVE_REINIT, message, self.span, help="give it back first, or allocate once")
            elif (_PERMIT, touch.cta) in state.tensor:
                message = "tensor memory is allocated after the block has given up the right to allocate more"
                raise fault(
                    state, classes.LIVE_REINIT, message, self.span, help="allocate once, what all need together"
                )
            check(context, state, agent, touch, self.mask, fenced=False)
            happen(context, state, agent.number, touch.bit)
            state.count(touch)
            state.tensor[key] = _GIVEN if self.frees else _TAKEN
        return self.number + 1


class Relinquishment(Step):
    """tcgen05.relinquish_alloc_permit."""

    def __init__(self, op: Op) -> None:
        super().__init__(op.span)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        state.tensor[_PERMIT, agent.cta] = _RELINQUISHED
        return self.number + 1


class TensorFence(Step):
    """tcgen05.fence::before_thread_sync or ::after_thread_sync."""

    def __init__(self, op: Op) -> None:
        super().__init__(op.span)
        self.before = "before" in op.name

    def run(self, context: Context, state: State, agent: Agent) -> int:
        number = agent.number
        known = state.known[number] & context.tensor & ~context.hidden(state, agent, self.mask)
        if self.before:
            state.proxied[number] |= known
        else:
            state.fenced[number] |= known & state.proxied[number]
        return self.number + 1


def kept(context: Context, state: State) -> Exception | None:
    """The fault of an allocation that nobody gives back."""
    for key, what in state.tensor.items():
        if what == _TAKEN:
            span = next((s.span for s in _allocations(context) if not s.frees), context.kernel.span)
            return fault(
                state,
                classes.EXIT_IN_FLIGHT,
                f"the block{'' if context.ctas == 1 else f' of rank {key[1]}'} ends without giving its tensor memory "
                "back: the next block that wants some waits forever",
                span,
                help="a warp calls `free()` (tcgen05.dealloc) behind a barrier after the last use",
            )
    return None
