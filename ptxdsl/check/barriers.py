"""Steps on mbarriers: initialisation, arrivals, announcements, waits, commits and copies that complete there."""

from __future__ import annotations

from math import prod

from ptxdsl.check import blame, brackets, phases
from ptxdsl.check.addresses import parts_of
from ptxdsl.check.boxes import copied
from ptxdsl.check.cluster import Apart
from ptxdsl.check.context import BARRIER_BYTES, Context
from ptxdsl.check.expressions import Expressions, Function
from ptxdsl.check.findings import Unproved
from ptxdsl.check.parts import Agent, Barrier, Touch
from ptxdsl.check.program import Cannot, Step
from ptxdsl.check.ranks import is_pairs, names_rank
from ptxdsl.check.slots import begin, check, happen, touches_of
from ptxdsl.check.states import State
from ptxdsl.check.threads import Mask, members
from ptxdsl.check.values import Sum, Value
from ptxdsl.effects import Kind
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, Expr, const
from ptxdsl.protocol.model import ONE_RUN, Op

_MASK = 0xFFFF  # the bits of a multicast's mask
_BYTES = "announce and copy a number of bytes that launch parameters and counters say"

Targets = tuple[tuple[Barrier, Mask], ...]


def barrier_step(op: Op, mask: Mask, expressions: Expressions, context: Context, agent: Agent) -> Step | None:
    """The step of an operation on an mbarrier; None of another."""
    if op.barrier is None:
        return None
    if op.barrier.address is None:
        why = f"which barrier `{op.called}` works on is not known"
        return Cannot(op.span, why, "name it by an array of barriers and an index")
    kind = op.kind
    if kind is Kind.BAR_WAIT:
        return Wait(op, mask, expressions)
    if kind is Kind.BAR_INIT:
        return Initialise(op, mask, expressions)
    if kind is Kind.BAR_INVAL:
        return Invalidate(op, mask, expressions)
    if kind in (Kind.BAR_ARRIVE, Kind.BAR_EXPECT):
        return Arrive(op, mask, expressions)
    if kind is Kind.COMMIT:
        return Commit(op, mask, expressions)
    if kind is Kind.ASYNC_COPY:
        return Copy(op, mask, expressions, context)
    return Cannot(op.span, f"`{op.called}` is not modelled", ONE_RUN)


class OnBarrier(Step):
    """A step that works on one barrier, or on one for each thread."""

    def __init__(self, op: Op, mask: Mask, expressions: Expressions) -> None:
        super().__init__(op.span)
        self.op = op
        self.acting = mask
        self.threads = members(mask)
        assert op.barrier is not None and op.barrier.address is not None
        self.function, self.lanes, used = expressions.split(op.barrier.address, mask)
        self.root = expressions.root(op.barrier.address)
        self.ranked = names_rank(op.barrier.address)
        self.multicast = expressions.function(op.mask) if op.mask is not None else None
        if op.mask is not None:
            used |= op.mask.variables
        self.variables = tuple(sorted(used))
        self.met: set[Barrier] = set()  # the barriers that it has come to
        self._known: dict[tuple[object, ...], Targets] = {}
        self._level = expressions

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
            phases.initialise(context, state, agent, barrier, self, count)
        return self.number + 1


class Invalidate(OnBarrier):
    def run(self, context: Context, state: State, agent: Agent) -> int:
        for barrier, mask in self.targets(context, state, agent):
            phases.invalidate(context, state, agent, barrier, self)
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
                raise Unproved(self.op.span, "the number of bytes depends on data", _BYTES)
            phases.arrive(
                context, state, agent, barrier, self, each * threads, announce=total, narrow=self.op.what.scope == "cta"
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
            state.fill.wait(context, state, agent, self.root, barrier.number)
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
                phases.arrive(context, state, agent, barrier, self, 0, complete=completed)
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
        bits = begin(context, state, found)
        for touch in found:
            check(context, state, agent, touch, self.mask)
            state.count(touch)
        context.forget(state, bits)
        state.live |= bits
        filled = self.filled(context, agent, env)
        for at, (barrier, mask) in enumerate(targets):
            threads = mask.bit_count()
            total = size if threads == 1 else self.number_of(size, "bytes") * threads
            if not isinstance(total, (int, Sum)):
                raise Unproved(self.op.span, "the number of bytes depends on data", _BYTES)
            if self.span is not None:
                barrier.copied[agent.number, self.span] = None
            brings = 0
            for touch in found:
                if not touch.writes or self.multicast is None or touch.cta == filled[at % len(filled)]:
                    brings |= touch.bit
            phases.arrive(context, state, agent, barrier, self, 0, complete=total, brings=brings, remote=self.proxy)
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
