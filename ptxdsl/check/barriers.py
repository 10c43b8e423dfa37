"""Steps on mbarriers: initialisation, arrivals, announcements, waits and commits."""

from __future__ import annotations

from math import prod

from ptxdsl.check import blame, brackets, phases
from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import BARRIER_BYTES, Context
from ptxdsl.check.expressions import Expressions, Function
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent, Barrier
from ptxdsl.check.program import Step
from ptxdsl.check.ranks import names_rank
from ptxdsl.check.slots import check, happen
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask, members
from ptxdsl.check.values import Sum, Value
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, Expr, const
from ptxdsl.protocol.model import Op

_MASK = 0xFFFF  # the bits of a multicast's mask
KNOWN_BYTES = "announce and copy a number of bytes that launch parameters and counters say"

Targets = tuple[tuple[Barrier, Mask], ...]


class OnBarrier(Step):
    """A step that works on one barrier, or on one for each thread."""

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op.span)
        self.op = op
        self.acting = mask
        self.threads = members(mask)
        assert op.barrier is not None and op.barrier.address is not None
        self.function, self.lanes, used = expressions.split(op.barrier.address, mask)
        self.root = self.table = expressions.root(op.barrier.address)
        self.ranked = names_rank(op.barrier.address)
        self.multicast = expressions.function(op.mask) if op.mask is not None else None
        if op.mask is not None:
            used |= op.mask.variables
        self.variables = tuple(sorted(used))
        self.met: set[Barrier] = set()  # the barriers that it has come to
        self._known: dict[tuple[object, ...], Targets] = {}
        self._level = expressions

    @property
    def is_fixed(self) -> bool:
        return not self.variables and self.lanes is None

    def value(self, expr: Expr | None, absent: int) -> Function:
        """The value of an operand, the same in all threads that do it."""
        if expr is None:
            return self._level.function(const(absent))
        row = self._level.row(expr)
        if row is not None:
            values = {row[t] for t in self.threads} if not isinstance(row, int) else {row}
            if len(values) == 1:
                return self._level.function(const(values.pop()))
        return self._level.function(expr)

    def number_of(self, value: Value, what: str) -> int:
        if type(value) is not int:
            assert self.span is not None
            why = f"{what} depends on data, or is not known when compiling"
            raise Unproved(self.span, why, "let it depend on constants, thread ids and counters alone")
        return value

    def targets(self, context: Context, state: State, agent: Agent) -> Targets:
        env = state.environments[agent.number]
        key = tuple([env[v] for v in self.variables])
        found = self._known.get(key)
        if found is None:
            addressed = self._addressed(context, state, agent.cta, env)
            self._compare(context, state, addressed, env)
            found = tuple([(context.barrier(address, cta), mask) for cta, address, mask in addressed])
            self._known[key] = found
            self.met.update(barrier for barrier, _ in found)
            context.meetings += 1
            missing = len(context.barriers) - len(state.phases)
            if missing:
                context.fit(state)
        return found

    def _compare(
        self, context: Context, state: State, addressed: list[tuple[int, int, Mask]], env: list[object]
    ) -> None:
        """Raises Apart where the other blocks do not come to the same barriers, each as seen from its own place."""
        if context.blocks.count == 1 or self._stays(env):
            return
        place = context.blocks.place
        arrivals = sorted((cta, at, mask.bit_count()) for cta, at, mask in addressed)
        for rank in range(1, context.blocks.count):
            there = self.of(rank)._addressed(context, state, rank, env)
            if sorted((place(rank, cta), at, mask.bit_count()) for cta, at, mask in there) != arrivals:
                raise Apart

    def _stays(self, env: list[object]) -> bool:
        """Whether each block comes to its own barriers, at addresses that are the same in all of them."""
        if self.elsewhere or self.ranked or self.multicast is not None:
            return False
        shared = self.function(env)
        return type(shared) is int and not shared + max(self.lanes or (0,)) >> CTA_SHIFT

    def _addressed(self, context: Context, state: State, own: int, env: list[object]) -> list[tuple[int, int, Mask]]:
        """The CTAs and addresses of barriers, with the threads that come to each."""
        shared = self.number_of(self.function(env), "which barrier it is")
        if self.lanes is None:
            addresses = {shared: self.acting}
        else:
            addresses = {}
            for t, apart in zip(self.threads, self.lanes, strict=True):
                addresses[shared + apart] = addresses.get(shared + apart, 0) | 1 << t
        ctas = [own]
        if self.multicast is not None:
            mask = self.number_of(self.multicast(env), "the mask of the multicast") & _MASK
            ctas = [cta for cta in range(context.ctas) if mask >> cta & 1]
            size = prod(context.kernel.cluster or (1,))
            if mask >> size:
                raise blame.no_block(state, self, mask.bit_length() - 1, size)
        found = []
        for address, threads in addresses.items():
            for cta in ctas:
                told = self.told(own, address, cta) if self.multicast is not None else address
                rank = told >> CTA_SHIFT
                there = rank - 1 if rank or self.ranked else cta
                if not 0 <= there < context.ctas:
                    raise blame.no_block(state, self, there, context.ctas)
                found.append((there, told & ((1 << CTA_SHIFT) - 1), threads))
        return found

    def told(self, own: int, address: int, cta: int) -> int:
        """The address of the barrier that hears of what a multicast does in a CTA. own: the CTA that starts it."""
        return address

    def claim(self, context: Context, state: State, agent: Agent, barrier: Barrier, mask: Mask) -> None:
        """A life of a barrier begins or ends: a write of its bytes, where data may lie as well."""
        if barrier.address >> ARRAY_SHIFT not in context.mixed:
            return
        array, at = context.array(barrier.address), barrier.address
        places, bytes_ = ((None, at, BARRIER_BYTES),), ((at, at + BARRIER_BYTES),)
        touch = context.touch(self, agent, array, barrier.cta, bytes_, writes=True, mask=mask, places=places)
        if not state.phases[barrier.number].expected:
            check(context, state, agent, touch, mask)
        happen(context, state, agent.number, touch.bit)


class Initialise(OnBarrier):
    initialises = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op, mask, expressions)
        self.count = self.value(op.count, 1)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        count = self.number_of(self.count(state.environments[agent.number]), "the count of the barrier")
        for barrier, mask in self.targets(context, state, agent):
            if mask & (mask - 1):
                raise blame.initialised_by_many(context, state, agent, barrier, self, mask)
            self.claim(context, state, agent, barrier, mask)
            phases.initialise(context, state, agent, barrier, self, count, mask)
        return self.number + 1


class Invalidate(OnBarrier):
    def run(self, context: Context, state: State, agent: Agent) -> int:
        for barrier, mask in self.targets(context, state, agent):
            if mask & (mask - 1):
                raise blame.initialised_by_many(context, state, agent, barrier, self, mask, "invalidated")
            phases.invalidate(context, state, agent, barrier, self, mask)
            self.claim(context, state, agent, barrier, mask)
        return self.number + 1


class Arrive(OnBarrier):
    """mbarrier.arrive, with or without a count, and arrive.expect_tx or expect_tx."""

    arrives = True
    hands_over = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op, mask, expressions)
        expects = op.kind is Kind.BAR_EXPECT
        self.each = self.value(op.count, 1 if not expects or op.what.count else 0)
        self.bytes = self.value(op.bytes, 0)
        self.relaxed = expects and not op.what.count  # it announces bytes and arrives not
        self.remote = op.what.space == "cluster"
        self.drops = "arrive_drop" in op.name

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        each = self.number_of(self.each(env), "how often it arrives")
        announced = self.bytes(env)
        for barrier, mask in self.targets(context, state, agent):
            threads = mask.bit_count()
            total = announced if threads == 1 or announced == 0 else self.number_of(announced, "bytes") * threads
            if announced != 0 and self.span is not None:
                barrier.announced[agent.number, self.span] = None
            if self.drops:
                why = "`arrive_drop` changes the count as it goes, which is not modelled"
                raise Unproved(
                    self.op.span, why, "let who leaves go on arriving (`arrive`), or end the loops of all at once"
                )
            if not isinstance(total, (int, Sum)):
                raise Unproved(self.op.span, "the number of bytes depends on data", KNOWN_BYTES)
            narrow, relaxed = self.op.what.scope == "cta", self.relaxed
            phases.arrive(
                context,
                state,
                agent,
                barrier,
                self,
                each * threads,
                announce=total,
                narrow=narrow,
                relaxed=relaxed,
                mask=mask,
            )
            if announced == 0:
                brackets.arrived(context, state, agent, self.root, barrier)
                state.fill.arrive(context, agent, barrier)
        return self.number + 1


class Wait(OnBarrier):
    waits = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op, mask, expressions)
        self.parity = self.value(op.parity, 0)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        targets = self.targets(context, state, agent)
        if len(targets) > 1:
            raise Unproved(
                self.op.span,
                "threads of a role wait on different barriers here",
                "branch on the threads' numbers before, with a wait in each arm",
            )
        parity = self.number_of(self.parity(state.environments[agent.number]), "the parity")
        barrier = targets[0][0]
        if parity >> 1:
            raise blame.no_parity(state, self, parity)
        after = phases.wait(context, state, agent, barrier, self, parity)
        if after >= 0:
            brackets.waited(context, state, agent, self.root, barrier, not state.phases[barrier.number].begun)
            state.fill.wait(context, state, agent, self.table, barrier.number)
        return after


class Commit(OnBarrier):
    """An arrival when asynchronous work is done: tcgen05.commit, cp.async.mbarrier.arrive; complete_tx."""

    arrives = True
    hands_over = True

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op, mask, expressions)
        self.bytes = self.value(op.bytes, 0)
        self.is_bytes = op.bytes is not None
        self.of_copies = "cp_async" in op.name or "cp.async" in op.name
        self.counts = not self.is_bytes and not (self.of_copies and "noinc" not in op.name)

    def run(self, context: Context, state: State, agent: Agent) -> int:
        env = state.environments[agent.number]
        brings = state.live & agent.products
        if self.of_copies:
            brings = 0
            for group in state.groups[agent.number].get("cp-async-group", ()):
                brings |= group
        for barrier, mask in self.targets(context, state, agent):
            if self.is_bytes:
                completed = self.bytes(env)
                phases.arrive(context, state, agent, barrier, self, 0, complete=completed, relaxed=True)
                continue
            count = mask.bit_count() if self.counts else 0
            arrival = context.use_bit(barrier, agent, self, later=True)
            everywhere = context.blocks.everywhere(arrival)
            context.forget(state, everywhere, seen=False)
            state.live |= everywhere
            phases.arrive(context, state, agent, barrier, self, count, brings=brings | arrival)
            brackets.arrived(context, state, agent, self.root, barrier)
            state.fill.arrive(context, agent, barrier)
        return self.number + 1
