"""Loops that a compiler has unrolled by the stages of a ring, rolled up again.

    while n - S * turn >= S: copy 0; copy 1; … copy S-1; turn += 1          for i in range(n): copy i % S
    if n - S * turn != 0: copy 0; if n - S * turn != 1: copy 1; …       →

The copies must be the same but for constants that grow evenly from one to the next: slots and barriers of stages. What
changes once a turn (the parity) then changes where the stage goes back to 0. So does a constant that differs from one
round to the next, where a turn goes round the ring several times. Copies of another form are told by their positions
(``by_position.py``). Only a loop that can be recognised in all of its parts is rolled up; any other one stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.protocol.algebra import linear, not_negative, of_linear, plain, substitute
from ptxdsl.protocol.by_position import ByPosition, Rest, Unrolled, rest_of
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, const, var, wrap
from ptxdsl.protocol.facts import NOTHING, Facts
from ptxdsl.protocol.left_between import by_copies
from ptxdsl.protocol.model import Assign, Branch, Loop, Node, Op, Place, Seq
from ptxdsl.protocol.ranges import while_condition
from ptxdsl.protocol.rewriting import assigned, expressions_of, mapped, with_expressions
from ptxdsl.protocol.tidy import same
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Span


@dataclass(frozen=True)
class Rolled:
    """A program with its loops rolled up. turns: variables that number the turns of loops. variables: how many there
    are. by_position: whether copies were told by their positions, or by how often the ring was gone round."""

    program: Seq
    turns: frozenset[int]
    variables: int
    by_position: bool


def rerolled(program: Seq, turns: frozenset[int], variables: int, by_position: bool) -> Rolled:
    """by_position: to take copies that differ by more than their stages."""
    work = _Rolling(program, turns, variables, by_position)
    new = work.seq(program, NOTHING)
    return Rolled(new, turns | work.numbers, work.variables, work.placed)


class _Different(Exception):
    """The copies are not the same."""


class _Rolling:
    def __init__(self, program: Seq, turns: frozenset[int], variables: int, by_position: bool) -> None:
        self.by_position = by_position
        self.placed = False
        self.numbers: set[int] = set()  # new variables that number turns
        self.program = program
        self.turns = turns
        self.variables = variables

    def fresh(self) -> int:
        self.variables += 1
        return self.variables - 1

    def seq(self, seq: Seq, facts: Facts) -> Seq:
        out: list[Node] = []
        nodes = list(seq.nodes)
        position = 0
        while position < len(nodes):
            node = nodes[position]
            found = self.rolled_up(nodes, position, facts) if isinstance(node, Loop) else None
            if found is not None:
                facts = facts.without(assigned(Seq(tuple(nodes[position : found[1]]))))
                rolled, position = found
                out.extend(rolled)
                continue
            after = facts.assigning(node) if isinstance(node, Assign) else facts.without(assigned(node))
            if isinstance(node, Branch):
                opposite = plain("not", node.condition, bits=1)
                then = self.seq(node.then, facts.and_(node.condition))
                node = Branch(node.condition, then, self.seq(node.orelse, facts.and_(opposite)), node.span)
            elif isinstance(node, Loop):
                node = replace(node, body=self.seq(node.body, after))
            out.append(node)
            facts = after
            position += 1
        return Seq(tuple(out))

    def rolled_up(self, nodes: list[Node], position: int, facts: Facts) -> tuple[list[Node], int] | None:
        """What becomes of an unrolled loop and its tail, and the position behind them."""
        loop = nodes[position]
        assert isinstance(loop, Loop)
        shape = self.shape(loop, facts)
        if shape is None:
            return self.left_between(loop, position)
        found = rest_of(nodes, position + 1, shape)
        if found is None:
            return None
        rest, behind = found
        own = nodes[position:behind]
        if not any(end.nodes for end in rest.ends) and not self.wanted_elsewhere(own, assigned(Seq(tuple(own)))):
            try:
                return self.roll(loop, shape, self.copies(rest)), behind
            except _Different:
                pass
        if not self.by_position:
            return None
        changed = {v for part in (rest.exits, *rest.copies) for node in part for v in assigned(node)}
        if shape.total.variables & changed or self.wanted_elsewhere(own, {shape.turn}):
            return None
        exits = self.wanted_elsewhere(own, {v.value for v in rest.exit_values})
        new = ByPosition(loop, shape, rest, *(self.fresh() for _ in range(3)), exits=exits).nodes()
        self.placed = self.placed or new is not None
        return None if new is None else (new, behind)

    def left_between(self, loop: Loop, position: int) -> tuple[list[Node], int] | None:
        index, at = self.fresh(), self.fresh()
        new = by_copies(loop, self.turns, index, at) if self.by_position else None
        if new is None or self.wanted_elsewhere([loop], assigned(loop) & self.turns):
            return None
        self.numbers.add(index)
        self.placed = True
        return new, position + 1

    def shape(self, loop: Loop, facts: Facts) -> Unrolled | None:
        if loop.range is not None or loop.once or len(loop.body.nodes) < 3:
            return None
        last, condition = loop.body.nodes[-1], while_condition(loop)
        if not isinstance(last, Assign) or condition is None or condition.op not in ("ge.u", "ge.s"):
            return None
        rest, stages = condition.args
        terms, constant = linear(rest)
        found = [t for t in last.targets if t in self.turns and var(t, rest.bits) in terms]
        if len(found) != 1 or stages.op != "const" or terms.pop(var(found[0], rest.bits)) != -stages.value:
            return None
        total = of_linear(terms, constant, rest.bits)
        if total.variables & assigned(loop):
            return None
        signed = not_negative(total) or facts.imply(plain("ge.s", total, const(0, total.bits), bits=1))
        if condition.op == "ge.s" and not signed:
            return None  # of a negative number there is no turn, but all of the rest
        return Unrolled(found[0], int(stages.value), total, signed)

    def copies(self, rest: Rest) -> list[list[Node]]:
        """The copies behind the loop, in terms of the loop's variables."""
        exits = rest.exit_values
        return [[with_expressions(node, exits.get, {}) for node in copy] for copy in rest.copies]

    def wanted_elsewhere(self, nodes: Sequence[Node], variables: set[int]) -> bool:
        """Whether anything outside of these nodes looks at variables."""
        own = {id(node) for node in nodes}
        looked: set[int] = set()

        def visit(node: Node) -> Node | None:
            if id(node) in own:
                return node
            for expr in expressions_of(node):
                looked.update(expr.variables)
            return None

        mapped(self.program, visit)
        return bool(looked & variables)

    def plainer(self, node: Node, span: Span) -> Node:
        """With every sum in one form, and as if it all stood in one place."""

        def here(node: Node) -> Node | None:
            return replace(node, span=span) if isinstance(node, Op) else None

        return mapped(Seq((with_expressions(node, self.normal, {}),)), here)

    def normal(self, expr: Expr) -> Expr | None:
        if expr.op in ("ext.s", "ext.u"):
            return self.extended(expr)
        if expr.op == "and" and expr.args[1].op == "const":
            return self.remainder(expr)
        if expr.op not in ("add", "sub", "mul"):
            return None
        terms, constant = linear(expr)
        inner = {substitute(term, self.normal, {}): factor for term, factor in terms.items()}
        terms, constant = linear(of_linear(inner, constant, expr.bits))
        ordered = dict(sorted(terms.items(), key=lambda item: repr(item[0])))
        return of_linear(ordered, constant, expr.bits)

    def remainder(self, expr: Expr) -> Expr | None:
        """``x & 2^k - 1``: what is a multiple of 2^k in the sum does not matter."""
        size = int(expr.args[1].value) + 1
        if size < 2 or size & (size - 1):
            return None
        terms, constant = linear(substitute(expr.args[0], self.normal, {}))
        kept = {term: factor % size for term, factor in terms.items() if factor % size}
        ordered = dict(sorted(kept.items(), key=lambda item: repr(item[0])))
        return plain("and", of_linear(ordered, constant % size, expr.bits), expr.args[1], bits=expr.bits)

    def extended(self, expr: Expr) -> Expr | None:
        """Numbers of turns and their multiples are far from where their type ends."""
        terms, constant = linear(expr.args[0])
        if len(terms) == 1:
            ((turn, factor),) = terms.items()
            if turn.op == "var" and turn.value in self.turns and not constant:
                wide = plain("ext.u", turn, bits=expr.bits)
                return plain("mul", wide, const(factor, expr.bits), bits=expr.bits)
        return None

    def roll(self, loop: Loop, shape: Unrolled, tail: list[list[Node]]) -> list[Node]:
        """Raises _Different."""
        nodes = list(loop.body.nodes[1:-1])
        last = loop.body.nodes[-1]
        assert isinstance(last, Assign)
        copies: list[list[Node]] = []
        for copy in tail:
            copies.append(nodes[: len(copy)])
            nodes = nodes[len(copy) :]
            pairs = zip(copies[-1], copy, strict=False)
            if not all(same(self.plainer(a, loop.span), self.plainer(b, loop.span)) for a, b in pairs):
                raise _Different
        copies.append(nodes)
        if len({len(copy) for copy in copies}) != 1 or not copies[0]:
            raise _Different
        template, body = self.template(shape, copies)
        values, at_end = template.advanced()
        for target, value in zip(last.targets, last.values, strict=True):
            values[target] = plain("select", at_end, value, var(target, value.bits), bits=value.bits)
        body.append(Assign(tuple(values), tuple(values.values())))
        new = Loop(Seq(tuple(body)), loop.span, shape.range(template.index), False, loop.label)
        own = template.variables
        return [Assign(own, tuple(const(0) for _ in own)), new]

    def template(self, shape: Unrolled, copies: list[list[Node]]) -> tuple[_Template, list[Node]]:
        """The copies as one: of a ring as long as a turn, or one that a turn goes round several times."""
        index, stage, round = self.fresh(), self.fresh(), self.fresh()
        least = 2 if self.by_position else shape.stages
        for ring in [size for size in range(shape.stages, least - 1, -1) if shape.stages % size == 0]:
            template = _Template(shape, index, stage, round, ring)
            try:
                body = [template.node(group) for group in zip(*copies, strict=True)]
            except _Different:
                continue
            self.placed = self.placed or ring < shape.stages
            return template, body
        raise _Different


class _Template:
    """Copies as one, with the stage and the index in the place of what grows.

    ring: how many stages there are. round: the variable that counts how often a turn has gone round them.
    """

    def __init__(self, shape: Unrolled, index: int, stage: int, round: int, ring: int) -> None:
        self.shape = shape
        self.index = index
        self.stage = stage
        self.round = round
        self.ring = ring
        self.rounds = shape.stages // ring

    @property
    def variables(self) -> tuple[int, ...]:
        return (self.stage, self.round) if self.rounds > 1 else (self.stage,)

    def advanced(self) -> tuple[dict[int, Expr], Expr]:
        """What its variables become behind a copy, and whether that is the last one of a turn."""
        stage, round = var(self.stage), var(self.round)
        ends = plain("eq", stage, const(self.ring - 1), bits=1)
        values = {self.stage: plain("select", ends, const(0), plain("add", stage, const(1)))}
        if self.rounds == 1:
            return values, ends
        is_last = plain("eq", round, const(self.rounds - 1), bits=1)
        again = plain("select", is_last, const(0), plain("add", round, const(1)))
        if self.rounds == 2:
            again = plain("xor", round, const(1))
        values[self.round] = plain("select", ends, again, round)
        return values, plain("and", ends, is_last, bits=1)

    def node(self, copies: tuple[Node, ...]) -> Node:
        first = copies[0]
        if any(type(copy) is not type(first) for copy in copies):
            raise _Different
        if isinstance(first, Op):
            return self.op(first, copies)
        if isinstance(first, Branch):
            condition = self.expr([c.condition for c in copies if isinstance(c, Branch)])
            return Branch(
                condition,
                self.seq([c.then for c in copies if isinstance(c, Branch)]),
                self.seq([c.orelse for c in copies if isinstance(c, Branch)]),
                first.span,
            )
        raise _Different

    def seq(self, copies: list[Seq]) -> Seq:
        if len({len(copy.nodes) for copy in copies}) != 1:
            raise _Different
        return Seq(tuple(self.node(group) for group in zip(*(copy.nodes for copy in copies), strict=True)))

    def op(self, first: Op, copies: tuple[Node, ...]) -> Op:
        ops = [copy for copy in copies if isinstance(copy, Op)]
        if len({(o.what.kind, o.name, len(o.reads), len(o.writes), o.elected) for o in ops}) != 1:
            raise _Different
        return replace(
            first,
            barrier=self.place([o.barrier for o in ops]),
            parity=self.some([o.parity for o in ops]),
            count=self.some([o.count for o in ops]),
            bytes=self.some([o.bytes for o in ops]),
            id=self.some([o.id for o in ops]),
            mask=self.some([o.mask for o in ops]),
            writes=tuple(self.place_of(list(group)) for group in zip(*(o.writes for o in ops), strict=True)),
            reads=tuple(self.place_of(list(group)) for group in zip(*(o.reads for o in ops), strict=True)),
        )

    def place(self, places: list[Place | None]) -> Place | None:
        given = [place for place in places if place is not None]
        if not given:
            return None
        if len(given) != len(places):
            raise _Different
        return self.place_of(given)

    def place_of(self, places: list[Place]) -> Place:
        widths = [place.width for place in places]
        width: int | Expr | None
        if all(isinstance(w, Expr) for w in widths):
            width = self.expr([w for w in widths if isinstance(w, Expr)])
        elif len(set(widths)) == 1:
            width = widths[0]
        else:
            raise _Different
        used = all(place.used for place in places)
        return Place(self.some([place.address for place in places]), width, None, used)

    def some(self, exprs: list[Expr | None]) -> Expr | None:
        given = [expr for expr in exprs if expr is not None]
        if not given:
            return None
        if len(given) != len(exprs):
            raise _Different
        return self.expr(given)

    def expr(self, exprs: list[Expr]) -> Expr:
        first = exprs[0]
        if all(expr is first for expr in exprs):
            return first
        bits = first.bits
        if any(expr.bits != bits for expr in exprs):
            raise _Different
        if bits > 1 and all(expr.op in ("add", "sub", "mul", "const") for expr in exprs):
            return self.sum(exprs, bits)
        if first.op not in ARITHMETIC or any((e.op, len(e.args)) != (first.op, len(first.args)) for e in exprs):
            raise _Different
        args = [self.expr([expr.args[i] for expr in exprs]) for i in range(len(first.args))]
        return plain(first.op, *args, bits=bits)

    def sum(self, exprs: list[Expr], bits: int) -> Expr:
        sums = [linear(expr) for expr in exprs]
        terms, start = sums[0]
        grown = wrap(sums[1][1] - start, bits)
        by_round = wrap(sums[self.ring][1] - start, bits) if self.rounds > 1 else 0
        if by_round == wrap(self.ring * grown, bits):  # it grows evenly from one copy to the next
            ring, by_round = len(sums), 0
        else:
            ring = self.ring
        for k, (_, constant) in enumerate(sums):
            if wrap(constant - start - k % ring * grown - k // ring * by_round, bits):
                raise _Different
        if any(other != terms for other, _ in sums):
            terms = self.terms([other for other, _ in sums])
        terms = dict(terms)
        turn = var(self.shape.turn)
        at = next((term for term in terms if term is turn or (term.op == "ext.u" and term.args[0] is turn)), None)
        if at is not None and (grown or by_round):
            if by_round:
                raise _Different
            # S * growth for each turn and growth for each stage: growth for each step of the whole loop.
            if wrap(terms.pop(at) - self.shape.stages * grown, bits):
                raise _Different
            moving = [(self.index, grown)]
        elif self.rounds > 1 and ring == len(sums) and grown:
            moving = [(self.stage, grown), (self.round, self.ring * grown)]
        else:
            moving = [(self.stage, grown), (self.round, by_round)]
        for variable, factor in moving:
            widened = plain("ext.u" if bits > 32 else "trunc", var(variable), bits=bits)
            terms[widened] = wrap(terms.get(widened, 0) + factor, bits)
        return of_linear({term: factor for term, factor in terms.items() if factor}, start, bits)

    def terms(self, sums: list[dict[Expr, int]]) -> dict[Expr, int]:
        """Sums that differ in one term: that as one."""
        common = {t: f for t, f in sums[0].items() if all(other.get(t) == f for other in sums)}
        own = [[(t, f) for t, f in terms.items() if t not in common] for terms in sums]
        if any(len(rest) != 1 or rest[0][1] != own[0][0][1] for rest in own):
            raise _Different
        merged = self.expr([rest[0][0] for rest in own])
        common[merged] = common.get(merged, 0) + own[0][0][1]
        return common
