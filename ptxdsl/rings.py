"""The ring pass: loops over a pipeline's stages get one copy of their body for each stage.

The unrolled loop tests for its end after each copy. In each copy the ring index is a constant, so barrier and slot
addresses are immediates; the phase flips once a turn. The rule (``ring_plan.py`` has the figures): a loop is unrolled
by its pipeline's stage count if that is at least 3, the index at its entry is a constant, every path through the body
steps the pipeline exactly once and the copies together are not too large. Everything else keeps the counter.

    for i in 0 ..< n carried (index = 0, phase = 1)       if 0 < n:
        wait [index], phase                                   loop carried (i = 0, phase = 1)
        index, phase = step (index, phase)           →            wait [0], phase
        repeat (index, phase)                                     if i + 1 == n: leave (1, phase)
                                                                  wait [1], phase  …
                                                                  wait [2], phase
                                                                  if i + 3 == n: leave (0, phase ^ 1)
                                                                  repeat (i + 3, phase ^ 1)
"""

from __future__ import annotations

from ptxdsl.fold import wrap
from ptxdsl.options import Options
from ptxdsl.ring_plan import Plan, Planner, Ring, trip_count
from ptxdsl.role_branches import make_uniform
from ptxdsl.simplify import carried_inits, carried_params, simplify
from ptxdsl.tir import I1, Block, Const, Kernel, Module, Op, Value
from ptxdsl.tir_clone import Cloner, emit


def unroll_rings(module: Module, options: Options) -> Module:
    """A new module with its ring loops unrolled and its role branches uniform (``role_branches.py``), where the options
    and the kernel's signature allow it, and steps from a constant index folded; the old one is not changed."""
    return Module([_unrolled(kernel, options.ring_unroll) for kernel in module.kernels])


def _unrolled(kernel: Kernel, allowed: bool) -> Kernel:
    allowed = allowed and kernel.signature.ring_unroll
    work = _Unroller(allowed)
    body = Block([], work.ops(kernel.body.ops))
    new = Kernel(kernel.name, list(kernel.params), body, kernel.signature, kernel.span)
    if allowed:
        make_uniform(new)
    simplify(new)
    return new


class _Unroller(Cloner):
    def __init__(self, allowed: bool) -> None:
        super().__init__()
        self.allowed = allowed
        self.planner = Planner()
        self.fixed: dict[Value, Const] = {}  # parameters of loops that stay, constant at every turn

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
            unrolling = _Unrolling(self, op, what, out)
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
            phase = emit(out, "xor", [phase, Const(phase.ty, 1)], phase.ty, op.span)
            following = following if stages == 1 else 0
        count = emit(out, "add", [count, Const(count.ty, 1)], count.ty, op.span)
        self.values.update(zip(op.results, (Const(index.ty, following), phase, count), strict=True))


class _Unrolling:
    """One loop in its new form."""

    def __init__(self, work: _Unroller, loop: Op, what: Plan, out: list[Op]) -> None:
        self.work = work
        self.loop = loop
        self.plan = what
        self.out = out
        self.inits = [work.value(v) for v in carried_inits(loop)]
        self.counted = loop.name == "for"
        self.trips = trip_count(loop) if self.counted else None
        self.new = Op("loop", [], [Value(r.ty, r.name) for r in loop.results], {}, loop.span)

    def run(self) -> None:
        if not self.counted:
            self.turns(self.out, None)
            self.map_results(self.new.results)
            return
        # A guard for no trips at all; from there the end is tested after each copy.
        start, stop = (self.work.value(v) for v in self.loop.operands[:2])
        name = ("lt" if self.loop.attrs["step"] > 0 else "gt") + (".s" if self.loop.attrs["signed"] else ".u")
        some = emit(self.out, name, [start, stop], I1, self.loop.span)
        results = [Value(r.ty, r.name) for r in self.loop.results]
        guard = Op("if", [some], results, {}, self.loop.span, [Block(), Block()])
        self.turns(guard.blocks[0].ops, start)
        guard.blocks[0].ops.append(self.end("yield", self.new.results))
        guard.blocks[1].ops.append(self.end("yield", self.inits))
        self.out.append(guard)
        self.map_results(guard.results)

    def map_results(self, results: list[Value]) -> None:
        self.work.values.update(zip(self.loop.results, results, strict=True))
        if self.trips is not None:
            for position, ring in self.plan.fixed.items():
                self.work.values[self.loop.results[position]] = self.index(ring, self.trips)

    def end(self, name: str, values: list[Value], target: Op | None = None) -> Op:
        return Op(name, values, [], {} if target is None else {"target": target}, self.loop.span)

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

    def copy(self, body: list[Op], copy: int, index: Value | None, values: list[Value]) -> list[Value]:
        """One copy of the loop's body; what it hands to the next turn."""
        work, old = self.work, self.loop.blocks[0]
        if index is not None:
            work.values[old.params[0]] = index
        work.values.update(zip(carried_params(self.loop), self.carried(values, copy), strict=True))
        last = old.ops[-1]
        if last.name == "repeat" and last.attrs["target"] is self.loop and repeats(old, self.loop) == 1:
            body += work.ops(old.ops[:-1])
            return self.vary([work.value(v) for v in last.operands])
        # `continue` inside: every way to the next turn leaves a scope
        scope = Op("scope", [], [Value(v.ty, v.name) for v in values], {}, self.loop.span)
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

    def exit(self, body: list[Op], copy: int, index: Value, values: list[Value]) -> Value:
        """The test for the end after a copy; the index of the next turn."""
        step, span, ty = self.loop.attrs["step"], self.loop.span, index.ty
        stop = self.work.value(self.loop.operands[1])
        following = emit(body, "add", [index, Const(ty, step)], ty, span)
        if self.trips is not None and (self.trips - 1) % self.plan.copies != copy:
            return following
        if abs(step) == 1:
            more = emit(body, "ne", [following, stop], I1, span)
        else:  # what is left of the range, without a sign: the next index itself may be past the end of its type
            left = emit(body, "sub", [stop, index] if step > 0 else [index, stop], ty, span)
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
