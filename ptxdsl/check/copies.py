"""Copies whose bytes complete on an mbarrier."""

from __future__ import annotations

from ptxdsl.check import phases
from ptxdsl.check.addresses import parts_of
from ptxdsl.check.barriers import KNOWN_BYTES, OnBarrier
from ptxdsl.check.boxes import copied
from ptxdsl.check.context import Context
from ptxdsl.check.expressions import Expressions
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent, Touch
from ptxdsl.check.ranks import is_pairs
from ptxdsl.check.slots import begin, touches_of
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask
from ptxdsl.check.values import Sum
from ptxdsl.protocol.expressions import CTA_SHIFT, const
from ptxdsl.protocol.model import Op


class Copy(OnBarrier):
    """A copy into shared memory whose bytes complete on a barrier; a multicast does so in each CTA of its mask.

    Where nothing is said of faults, copies that follow at once and complete on the same barrier are one step with it.
    That hides nothing: nobody comes between them. Those that write the same bytes are told from one another again. And
    the barrier completes with the last of them or not at all: with threads' arrivals missing it counts their sum; with
    none missing it waits for bytes, and where it had them before the last copy, the sum is more than it waits for.
    """

    arrives = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions, context: Context) -> None:
        super().__init__(op, mask, expressions)
        size = copied(op, context.boxes)
        self.unknown = size is None
        self.bytes = self.value(size, 0)
        self.size = size.value if size is not None and size.op == "const" else None
        self.proxy = op.what.proxy == "async"
        self.writes = parts_of(op.writes, op.span, mask, expressions, boxes=context.boxes)
        self.reads = parts_of(op.reads, op.span, mask, expressions, boxes=context.boxes)
        parts = frozenset[int]().union(*(part.variables for part in (*self.writes, *self.reads)), self.variables)
        self.part_variables = tuple(sorted(parts))
        self.pair = is_pairs(op)
        self.several = False
        self._touches: dict[tuple[object, ...], list[Touch]] = {}

    def takes(self, op: Op, expressions: Expressions, context: Context) -> bool:
        """Takes a copy that follows at once into the same step."""
        own, size = self.op, copied(op, context.boxes)
        if (
            not context.coarse
            or (op.name, op.what, op.mask) != (own.name, own.what, own.mask)
            or op.barrier != own.barrier
            or op.elected
            or any(one.reads or any(place.address is None for place in one.writes) for one in (own, op))
            or not (self.size and size is not None and size.op == "const" and size.value > 0)
        ):
            return False
        self.size += size.value
        self.bytes = expressions.function(const(self.size))
        self.several = True
        parts_of(op.writes, op.span, self.acting, expressions, boxes=context.boxes, to=self.writes)
        self.part_variables = tuple(sorted({*self.part_variables, *(v for p in self.writes for v in p.variables)}))
        return True

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        if self.unknown:
            raise Unproved(
                self.op.span, "how many bytes the tensor copy moves is not known", "use a SharedTile, or `bytes=`"
            )
        size = self.bytes(env)
        targets = self.targets(context, state, agent)
        found = self.touches(context, state, agent)
        bits = begin(context, state, agent, found, self.mask)
        context.forget(state, bits)
        state.live |= bits
        filled = self.filled(context, agent, env)
        for at, (barrier, mask) in enumerate(targets):
            threads = mask.bit_count()
            total = size if threads == 1 else self.number_of(size, "bytes") * threads
            if not isinstance(total, (int, Sum)):
                raise Unproved(self.op.span, "the number of bytes depends on data", KNOWN_BYTES)
            if self.span is not None:
                barrier.copied[agent.number, self.span] = None
            brings = 0
            for touch in found:
                if not touch.writes or self.multicast is None or touch.cta == filled[at % len(filled)]:
                    brings |= touch.bit
            phases.arrive(
                context, state, agent, barrier, self, 0, complete=total, brings=brings, remote=self.proxy, mask=mask
            )
        return self.number + 1

    def touches(self, context: Context, state: State, agent: Agent) -> list[Touch]:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.part_variables])
        found = self._touches.get(key)
        if found is None:
            found = self._touches[key] = self._made(context, agent, env)
        return found

    def told(self, own: int, address: int, cta: int) -> int:
        """With a pair it is of the even or the odd CTA of each pair, as the one that the copy names."""
        if not self.pair:
            return address
        rank, at = address >> CTA_SHIFT, address & (1 << CTA_SHIFT) - 1
        named = rank - 1 if rank else own
        return at + ((cta & ~1 | named & 1) + 1 << CTA_SHIFT)

    def filled(self, context: Context, agent: Agent, env: list[object]) -> list[int]:
        """The CTAs that it writes to, in the order in which it tells barriers of that."""
        if self.multicast is None:
            return [agent.cta]
        ctas = self.number_of(self.multicast(env), "the mask of the multicast")
        return [cta for cta in range(context.ctas) if ctas >> cta & 1]

    def _made(self, context: Context, agent: Agent, env: list[object]) -> list[Touch]:
        made = touches_of(self, self.reads, context, agent, env, writes=False, mask=self.acting, asynchronous=True)
        for cta in self.filled(context, agent, env):
            made += touches_of(
                self, self.writes, context, agent, env, writes=True, mask=self.acting, asynchronous=True, cta=cta
            )
        if self.several and not all(form.exact and form.is_apart for t in made for form in (t, *t.elsewhere)):
            raise Unproved(
                self.op.span,
                "copies may write the same bytes here",
                "let copies between two waits write different bytes",
            )
        if not self.proxy:  # st.async is of the threads' own proxy
            for touch in made:
                context.plain |= context.blocks.everywhere(touch.bit)
        return made
