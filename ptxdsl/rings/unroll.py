"""The ring pass: loops over a pipeline's stages get one copy of their body for each stage.

In each copy the ring index is a constant, so barrier and slot addresses are immediates; the phase flips once a turn, or
is a constant as well where two turns are one. The usual form is a loop over whole turns, without a test between the
stages, and then what is left of the range; a large body keeps one copy for each stage and is tested after each.
``plan.py`` has the rule and its figures. For three stages, one turn:

    for i in 0 ..< n carried (index = 0, phase = 1)       left = max(n, 0)
        wait [index], phase                               if left >= 3: loop carried (left, i = 0, phase = 1)
        index, phase = step (index, phase)                    wait [0], phase
        repeat (index, phase)                                 wait [1], phase  …
                                                          →   wait [2], phase
                                                              if left - 3 < 3: leave
                                                              repeat (left - 3, i + 3, phase ^ 1)
                                                          if left == 0: leave (index = 0, phase)
                                                          wait [0], phase
                                                          if left == 1: leave (index = 1, phase)
                                                          wait [1], phase
                                                          leave (index = 2, phase)
"""

from __future__ import annotations

from ptxdsl.options import Options
from ptxdsl.rings.hoist import hoist
from ptxdsl.rings.plan import Plan, Planner, Ring, trip_count
from ptxdsl.rings.role_branches import make_uniform
from ptxdsl.tir import I1, Block, Const, Kernel, Module, Op, Value
from ptxdsl.tir.clone import Cloner, emit
from ptxdsl.tir.fold import wrap
from ptxdsl.tir.simplify import carried_inits, carried_params, simplify


def unroll_rings(module: Module, options: Options) -> Module:
    """A new module with its ring loops unrolled and its role branches uniform (``role_branches.py``), where the options
    and the kernel's signature allow it, steps from a constant index folded, and code moved out of loops and branches
    (``hoist.py``); the old one is not changed."""
    return Module([_unrolled(kernel, options.ring_unroll) for kernel in module.kernels])


def _unrolled(kernel: Kernel, allowed: bool) -> Kernel:
    allowed = allowed and kernel.signature.ring_unroll
    work = _Unroller(allowed)
    body = Block([], work.ops(kernel.body.ops))
    new = Kernel(kernel.name, list(kernel.params), body, kernel.signature, kernel.span)
    if allowed:
        make_uniform(new)
    simplify(new)
    hoist(new)
    return new


class _Unroller(Cloner):
    special = Cloner.special | {"pipe.step"}

    def __init__(self, allowed: bool) -> None:
        super().__init__()
        self.allowed = allowed
        self.planner = Planner()
        self.fixed: dict[Value, Const] = {}  # parameters of loops that stay, constant at every turn
        self.flipped: dict[Value, Value] = {}  # a flipped phase to the phase before

    def fresh(self, value: Value) -> Value:
        new = super().fresh(value)
        if value in self.fixed:
            self.values[value] = self.fixed[value]
        return new

    def op(self, op: Op, out: list[Op]) -> None:
        if op.name == "pipe.step" and isinstance(self.value(op.operands[0]), Const):
            self.step(op, out)
            return
        if op.name in ("for", "loop"):
            what = self.planner.plan(op, [self.value(v) for v in carried_inits(op)])
            unrolling = (_TestedCopies if what.tested else _WholeTurns)(self, op, what, out)
            if what.copies > 1 and self.allowed:
                unrolling.run()
                return
            params = carried_params(op)
            self.fixed |= {params[p]: unrolling.index(r, 0) for p, r in what.fixed.items() if r.period == 1}
        super().op(op, out)

    def step(self, op: Op, out: list[Op]) -> None:
        """A step from a constant index: the next is constant, and whether the phase flips is known."""
        index, phase, count = (self.value(v) for v in op.operands)
        assert isinstance(index, Const)
        stages = op.attrs["stages"]
        following = index.value if stages == 1 else wrap(index.value + 1, index.ty.bits)
        turn = stages == 1 or following == stages
        if turn:
            phase = self.flip(phase, op, out)
            following = following if stages == 1 else 0
        count = emit(out, "add", [count, Const(count.ty, 1)], count.ty, op.span)
        self.values.update(zip(op.results, (Const(index.ty, following), phase, count), strict=True))

    def flip(self, phase: Value, step: Op, out: list[Op]) -> Value:
        """Flipped twice, a phase is what it was: over an even number of turns it is a constant."""
        if phase not in self.flipped:
            other = emit(out, "xor", [phase, Const(phase.ty, 1)], phase.ty, step.span)
            self.flipped[other] = phase
            return other
        return self.flipped[phase]


class _Unrolling:
    """One loop in its new form: what both forms share, the copies of its body."""

    new: Op  # stands for the old loop: what leaves it, leaves this

    def __init__(self, work: _Unroller, loop: Op, what: Plan, out: list[Op]) -> None:
        self.work = work
        self.loop = loop
        self.plan = what
        self.out = out
        self.span = loop.span
        self.inits = [work.value(v) for v in carried_inits(loop)]
        self.counted = loop.name == "for"
        # Whether the body has one way to the next turn, at its end.
        last = loop.blocks[0].ops[-1]
        self.straight = last.name == "repeat" and last.attrs["target"] is loop and repeats(loop.blocks[0], loop) == 1
        self.trips = trip_count(loop)
        if self.counted:
            self.step: int = loop.attrs["step"]
            self.signed: bool = loop.attrs["signed"]
            self.start, self.stop = (work.value(v) for v in loop.operands[:2])

    def map_results(self, results: list[Value]) -> None:
        self.work.values.update(zip(self.loop.results, results, strict=True))
        if self.trips is not None:
            for position, ring in self.plan.fixed.items():
                self.work.values[self.loop.results[position]] = self.index(ring, self.trips)

    def results(self) -> list[Value]:
        return [Value(r.ty, r.name) for r in self.loop.results]

    def end(self, name: str, values: list[Value], target: Op | None = None) -> Op:
        return Op(name, values, [], {} if target is None else {"target": target}, self.span)

    def in_range(self) -> Value:
        """Whether there is a first turn."""
        name = ("lt" if self.step > 0 else "gt") + (".s" if self.signed else ".u")
        return emit(self.out, name, [self.start, self.stop], I1, self.span)

    def following(self, body: list[Op], index: Value) -> Value:
        """The index of the next turn. Steps of one never pass the end of the range; a longer one may wrap around."""
        flag = "nsw" if self.signed else "nuw"
        flags = {flag: True} if self.step == 1 or (self.step == -1 and flag == "nsw") else {}
        return emit(body, "add", [index, Const(index.ty, self.step)], index.ty, self.span, **flags)

    def index(self, ring: Ring, turn: int) -> Const:
        """The ring index at the start of a turn, counted from the loop's entry."""
        init = self.inits[ring.position]
        assert isinstance(init, Const)
        return Const(init.ty, (init.value + turn * ring.advance) % ring.stages)

    def carried(self, varying: list[Value], turn: int) -> list[Value]:
        """All that the old loop carries, at the start of a turn."""
        rest = iter(varying)
        fixed = self.plan.fixed
        return [self.index(fixed[i], turn) if i in fixed else next(rest) for i in range(len(self.inits))]

    def vary(self, carried: list[Value]) -> list[Value]:
        return [v for i, v in enumerate(carried) if i not in self.plan.fixed]

    def copy(self, body: list[Op], turn: int, index: Value | None, values: list[Value]) -> list[Value]:
        """One copy of the loop's body; what it hands to the next turn."""
        work, old = self.work, self.loop.blocks[0]
        if index is not None:
            work.values[old.params[0]] = index
        work.values.update(zip(carried_params(self.loop), self.carried(values, turn), strict=True))
        if self.straight:
            body += work.ops(old.ops[:-1])
            return self.vary([work.value(v) for v in old.ops[-1].operands])
        # `continue` inside: every way to the next turn leaves a scope
        scope = Op("scope", [], [Value(v.ty, v.name) for v in values], {}, self.span)
        ops = work.ops(old.ops)
        self.redirect(ops, scope)
        scope.blocks = [Block([], ops)]
        body.append(scope)
        return list(scope.results)

    def redirect(self, ops: list[Op], scope: Op) -> None:
        for op in ops:
            if op.name == "repeat" and op.attrs["target"] is self.new:
                op.name, op.attrs, op.operands = "leave", {"target": scope}, self.vary(op.operands)
            for block in op.blocks:
                self.redirect(block.ops, scope)


class _WholeTurns(_Unrolling):
    """A loop over whole turns, and what is left of the range after it."""

    def run(self) -> None:
        self.new = Op("scope", [], self.results(), {}, self.span, [Block()])
        self.work.targets[self.loop] = self.new
        self.out.append(self.new)
        self.out = self.new.blocks[0].ops
        copies, left, index, values = self.plan.copies, None, self.start, self.vary(self.inits)
        if self.trips is None or self.trips >= 2 * copies:
            left, index, values = self.main(values)
        single = copies - 1 if self.trips is None else self.trips if left is None else self.trips % copies
        for turn in range(single):
            if self.trips is None and left is not None:
                self.leave_if(emit(self.out, "eq", [left, Const(left.ty, turn)], I1, self.span), turn, values)
            values = self.copy(self.out, turn, index, values)
            index = self.following(self.out, index)
        self.out.append(self.end("leave", self.carried(values, single), self.new))
        self.map_results(self.new.results)

    def leave_if(self, done: Value, turn: int, values: list[Value]) -> None:
        leave = self.end("leave", self.carried(values, turn), self.new)
        blocks = [Block([], [leave]), Block([], [self.end("yield", [])])]
        self.out.append(Op("if", [done], [], {}, self.span, blocks))

    def count(self) -> Value:
        """The trip count, without a sign: nothing here leaves the range of the index's type."""
        ty = self.start.ty
        if self.step == 1 and isinstance(self.start, Const) and self.start.value == 0:
            return emit(self.out, "max.s", [self.stop, self.start], ty, self.span) if self.signed else self.stop
        span = [self.stop, self.start] if self.step > 0 else [self.start, self.stop]
        trips = emit(self.out, "sub", span, ty, self.span)
        if abs(self.step) != 1:
            less = emit(self.out, "sub", [trips, Const(ty, 1)], ty, self.span)
            full = emit(self.out, "div.u", [less, Const(ty, wrap(abs(self.step), ty.bits))], ty, self.span)
            trips = emit(self.out, "add", [full, Const(ty, 1)], ty, self.span)
        return emit(self.out, "select", [self.in_range(), trips, Const(ty, 0)], ty, self.span)

    def main(self, values: list[Value]) -> tuple[Value, Value, list[Value]]:
        """The loop over whole turns: how many single ones are left, their index and what they carry."""
        copies, ty = self.plan.copies, self.start.ty
        trips = self.count()
        enough = emit(self.out, "ge.u", [trips, Const(ty, copies)], I1, self.span)
        entry = [trips, self.start, *values]
        old = [Value(ty, "left"), self.loop.blocks[0].params[0], *self.vary(carried_params(self.loop))]
        params, results, after = ([Value(v.ty, v.name) for v in old] for _ in range(3))
        left, index, *inside = params
        loop = Op("loop", entry, results, {}, self.span)
        body: list[Op] = []
        loop.blocks = [Block(params, body)]
        for turn in range(copies):
            inside = self.copy(body, turn, index, inside)
            index = self.following(body, index)
        left = emit(body, "sub", [left, Const(ty, copies)], ty, self.span)
        again = emit(body, "ge.u", [left, Const(ty, copies)], I1, self.span)
        test = Op("if", [again], [], {}, self.span, [Block(), Block()])
        test.blocks[0].ops.append(self.end("yield", []))
        test.blocks[1].ops.append(self.end("leave", [left, index, *inside], loop))
        body += [test, self.end("repeat", [left, index, *inside], loop)]
        guard = Op("if", [enough], after, {}, self.span)
        guard.blocks = [Block([], [loop, self.end("yield", results)]), Block([], [self.end("yield", entry)])]
        self.out.append(guard)
        return after[0], after[1], after[2:]


class _TestedCopies(_Unrolling):
    """A loop that may end after each copy."""

    def run(self) -> None:
        self.new = Op("loop", [], self.results(), {}, self.span)
        if not self.counted:
            self.turns(self.out, None)
            self.map_results(self.new.results)
            return
        # A guard for no trips at all; from there the end is tested after each copy.
        guard = Op("if", [self.in_range()], self.results(), {}, self.span, [Block(), Block()])
        self.turns(guard.blocks[0].ops, self.start)
        guard.blocks[0].ops.append(self.end("yield", self.new.results))
        guard.blocks[1].ops.append(self.end("yield", self.inits))
        self.out.append(guard)
        self.map_results(guard.results)

    def turns(self, out: list[Op], start: Value | None) -> None:
        """The new loop: the copies one after another."""
        params = [Value(p.ty, p.name) for p in self.vary(carried_params(self.loop))]
        self.new.operands = self.vary(self.inits)
        index = None
        body: list[Op] = []
        if start is not None:
            index = Value(start.ty, self.loop.blocks[0].params[0].name)
            self.new.operands.insert(0, start)
        self.new.blocks = [Block([*([] if index is None else [index]), *params], body)]
        self.work.targets[self.loop] = self.new
        values = params
        for copy in range(self.plan.copies):
            values = self.copy(body, copy, index, values)
            if index is not None:
                index = self.exit(body, copy, index, values)
        body.append(self.end("repeat", [*([] if index is None else [index]), *values], self.new))
        out.append(self.new)

    def exit(self, body: list[Op], copy: int, index: Value, values: list[Value]) -> Value:
        """The test for the end after a copy; the index of the next turn."""
        step, span, ty = self.step, self.span, index.ty
        following = self.following(body, index)
        if self.trips is not None and (self.trips - 1) % self.plan.copies != copy:
            return following
        if abs(step) == 1:
            more = emit(body, "ne", [following, self.stop], I1, span)
        else:  # what is left of the range, without a sign: the next index itself may be past the end of its type
            left = emit(body, "sub", [self.stop, index] if step > 0 else [index, self.stop], ty, span)
            more = emit(body, "gt.u", [left, Const(ty, wrap(abs(step), ty.bits))], I1, span)
        test = Op("if", [more], [], {}, span, [Block(), Block()])
        test.blocks[0].ops.append(self.end("yield", []))
        test.blocks[1].ops.append(self.end("leave", self.carried(values, copy + 1), self.new))
        body.append(test)
        return following


def repeats(block: Block, loop: Op) -> int:
    """How many ways lead to the loop's next turn."""
    return sum(
        (op.name == "repeat" and op.attrs["target"] is loop) + sum(repeats(inner, loop) for inner in op.blocks)
        for op in block.ops
    )
