"""Asynchronous work that completes in groups: bulk stores, cp.async, wgmma.

Work that was started and not waited for is nobody's to rely on: its events are known to no agent until the group that
they are in is waited for, by the agent that started it, or told by a barrier.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.check import own_groups
from ptxdsl.check.addresses import parts_of
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.program import Cannot, Step
from ptxdsl.check.slots import begin, touches_of
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask
from ptxdsl.effects import Kind
from ptxdsl.protocol.model import ONE_RUN, Op

WGMMA = "wgmma-group"
_MECHANISMS = own_groups.MECHANISMS | {WGMMA}


def group_step(op: Op, mask: Mask, expressions: Expressions, context: Context, agent: Agent) -> Step | None:
    """The step of an operation on groups; what nobody else takes is not modelled."""
    kind, mechanism = op.kind, op.what.completes_on
    if kind is Kind.FENCE:
        return Fence(op)
    if mechanism in _MECHANISMS:
        assert mechanism is not None
        if mechanism == WGMMA and kind is Kind.ASYNC_MMA and not mask & expressions.block.leaders:
            return None  # a warp does it as one: it is told of who has the first lane
        if kind in (Kind.ASYNC_COPY, Kind.ASYNC_MMA):
            return Start(op, mask, expressions, mechanism, context.boxes)
        if kind is Kind.COMMIT:
            return CommitGroup(op, mechanism)
        if kind is Kind.WAIT_GROUP:
            return WaitGroup(op, mechanism, expressions)
    return Cannot(op.span, f"`{op.called}` is not modelled", ONE_RUN)


class Fence(Step):
    """A proxy fence shows the async proxy what the threads know of; other fences change nothing here."""

    def __init__(self, op: Op) -> None:
        super().__init__(op.span)
        fences = op.what.proxy == "async" and "proxy" in op.name
        self.proxy = fences and op.what.space in (None, "shared", "cluster")
        self.inits = "mbarrier_init" in op.name or "mbarrier_init" in op.name.replace(".", "_")

    def run(self, context: Context, state: State, agent: Agent) -> int:
        number = agent.number
        if self.proxy:
            hidden = context.hidden(state, agent, self.mask)
            state.proxied[number] |= state.known[number] & ~hidden & (context.plain | context.initialisations())
        elif self.inits:
            bits = context.initialisations()
            state.proxied[number] |= state.known[number] & bits & ~context.hidden(state, agent, self.mask)
        return self.number + 1


class Start(Step):
    """A copy or a matrix product that completes with its group."""

    def __init__(self, op: Op, mask: Mask, expressions: Expressions, mechanism: str, boxes: Mapping[int, int]) -> None:
        super().__init__(op.span)
        self.op = op
        self.acting = mask
        self.mechanism = mechanism
        self.asynchronous = op.what.proxy == "async"
        self.pipe = False
        self.together = mechanism == WGMMA
        self.grouped = mechanism != WGMMA
        self.parts = [
            (parts_of(places, op.span, mask, expressions, boxes=boxes), writes)
            for places, writes in ((op.reads, False), (op.writes, True))
            if places
        ]
        self.unknown = any(place.address is None for place in (*op.reads, *op.writes)) or not self.parts
        variables = frozenset[int]().union(*(part.variables for parts, _ in self.parts for part in parts))
        self.variables = tuple(sorted(variables))
        self._touches: dict[tuple[object, ...], list[Touch]] = {}

    def takes(self, op: Op, expressions: Expressions, context: Context) -> bool:
        """Takes work that follows at once into the same step: matrix products that only read as this one does, or what
        the tensor cores do in order for one line of the source."""
        if op.name != self.op.name or op.count is not self.op.count:
            return False
        if self.pipe:
            alike = op.span == self.span
        else:
            alike = op.kind is self.op.kind is Kind.ASYNC_MMA and bool(op.reads) and not (op.writes or self.op.writes)
        if not alike or self.unknown or any(place.address is None for place in (*op.reads, *op.writes)):
            return False
        for parts, writes in self.parts:
            parts_of(op.writes if writes else op.reads, op.span, self.acting, expressions, to=parts)
        variables = frozenset[int]().union(*(part.variables for parts, _ in self.parts for part in parts))
        self.variables = tuple(sorted(variables))
        return True

    def ctas(self, agent: Agent) -> tuple[int, ...]:
        """In whose memory it works."""
        return (agent.cta,)

    def touches(self, context: Context, state: State, agent: Agent) -> list[Touch]:
        if self.unknown:
            raise Unproved(
                self.op.span,
                "the shared memory that it reads is not modelled",
                "name its operands by a SharedTile, or by a descriptor of one",
            )
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        found = self._touches.get(key)
        if found is None:
            found = self._touches[key] = []
            for cta in self.ctas(agent):
                for parts, writes in self.parts:
                    found += touches_of(
                        self, parts, context, agent, env, writes=writes, mask=self.acting,
                        asynchronous=self.asynchronous, cta=cta, pipe=self.pipe, grouped=self.grouped,
                        together=self.together,
                    )  # fmt: skip
        return found

    def run(self, context: Context, state: State, agent: Agent) -> int:
        found = self.touches(context, state, agent)
        bits = begin(context, state, agent, found, self.mask)
        context.forget(state, bits)
        state.live |= bits
        state.fresh[agent.number] &= ~bits
        state.met[agent.number] &= ~bits
        self.is_under_way(state, agent, bits)
        return self.number + 1

    def is_under_way(self, state: State, agent: Agent, bits: int) -> None:
        """Notes its events in the open group."""
        groups = state.groups[agent.number]
        current = groups.get(self.mechanism, (0,))
        groups[self.mechanism] = (current[0] | bits, *(group & ~bits for group in current[1:]))


class CommitGroup(Step):
    def __init__(self, op: Op, mechanism: str) -> None:
        super().__init__(op.span)
        self.mechanism = mechanism

    def run(self, context: Context, state: State, agent: Agent) -> int:
        groups = state.groups[agent.number]
        current = groups.get(self.mechanism, (0,))
        made = (0, *current)
        while len(made) > 1 and not made[-1]:
            made = made[:-1]  # an old group that has nothing in it is complete as soon as it is waited for
        groups[self.mechanism] = made
        return self.number + 1


class WaitGroup(Step):
    """Waits until at most n groups are under way (cp.async.wait_all: none, the open one too)."""

    def __init__(self, op: Op, mechanism: str, expressions: Expressions) -> None:
        super().__init__(op.span)
        self.mechanism = mechanism
        self.all = op.name.endswith(("wait_all", "wait.all"))
        value = expressions.constant(op.count) if op.count is not None else 0
        self.most = value if isinstance(value, int) else 0
        self.known = isinstance(value, int)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        if not self.known:
            assert self.span is not None
            raise Unproved(
                self.span,
                "how many groups it waits for is not known when compiling",
                "leave a constant number of groups",
            )
        groups = state.groups[agent.number]
        current = groups.get(self.mechanism, (0,))
        keep = 0 if self.all else 1 + self.most
        done = 0
        for group in current[keep:]:
            done |= group
        left = current[:keep]
        if any(left):
            groups[self.mechanism] = left
        else:
            groups.pop(self.mechanism, None)
        state.known[agent.number] |= done
        state.fresh[agent.number] |= done
        if self.mechanism in own_groups.MECHANISMS:  # each thread has waited for its own copies
            state.met[agent.number] &= ~done
        else:  # each warp for its part
            state.met[agent.number] |= done
        return self.number + 1
