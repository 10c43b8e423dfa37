"""Loops in which each thread can be followed by itself, written out turn by turn.

``while i < 256: bins[i] = 0; i += block_dim.x`` and ``if t < half: …; half //= 2`` go round as a thread's number says,
or do in each turn something else with it. Agents (``agents.py``) are threads that do the same; there are none here. But
where the block's size decides how often such a loop goes round and what its conditions are, it is a number of turns in
each of which all is known of each thread: operations get the values that the loop's variables have in the turn, and are
those of the threads that come to them. That is the program itself, one turn after the other.

Where more decides, and threads only access memory until they meet behind the loop, each may do that in its turns or
not, at addresses of which is known what does not change in the loop: accesses that may happen (``Flattener.perhaps``).

Fences of memory between threads' own accesses are left out: what they order nobody here relies on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from ptxdsl.check.threads import Block, Mask
from ptxdsl.effects import ACCESSES, Kind
from ptxdsl.protocol.algebra import substitute
from ptxdsl.protocol.expressions import CONVERSIONS, Expr, apply, const, nodes, unknown, var
from ptxdsl.protocol.model import Assign, Branch, Jump, Kernel, Loop, Node, Op, Seq, walk
from ptxdsl.protocol.rewriting import assigned, expressions_of, with_own_expressions
from ptxdsl.record import replace

_MOST_TURNS = 64
_MOST_NODES = 2000

_READ = frozenset({"answer", "held", "drawn"})

Values = dict[int, Expr]  # of variables, as expressions of thread ids and of what the launch says
Some = tuple[Mask, Expr | None]  # threads, and the condition that they are these; None: all who come to the loop


class _TooMuch(Exception):
    """The turns cannot be followed, or are too many."""


def written_out(kernel: Kernel, block: Block) -> Kernel:
    """The kernel with such loops written out for blocks of a shape."""
    maker = _Writer(kernel, block)
    if not maker.loops and not maker.mixing and not any(_is_plain_fence(node) for node in kernel.nodes):
        return kernel
    return replace(kernel, program=maker.seq(kernel.program, {}))


def _is_plain_fence(node: Node) -> bool:
    if not isinstance(node, Op) or node.kind is not Kind.FENCE or node.what.space == "tensor":
        return False
    return node.what.proxy != "async" and "proxy" not in node.name and "init" not in node.name


class _Writer:
    """loops: those in which a condition depends on a thread's number and on what the loop changes."""

    def __init__(self, kernel: Kernel, block: Block) -> None:
        self.block = block
        self.own = of_threads(kernel)
        self.mixing = {id(n) for n in kernel.nodes if isinstance(n, Loop) and self._mixes(n)}
        self.loops = {id(n) for n in kernel.nodes if isinstance(n, Loop) and not n.once and self._divides(n)}
        self.nodes = 0

    def _divides(self, loop: Loop) -> bool:
        changes = assigned(loop)
        for node in walk(loop):
            if isinstance(node, (Branch, Loop)):
                for expr in expressions_of(node):
                    variables = expr.variables
                    if variables & changes and (variables & self.own or _of_thread(expr)):
                        return True
        return False

    def _mixes(self, loop: Loop) -> bool:
        """Whether the block's size says how often it goes round, and its accesses lie where a thread's number and the
        turn together say: in a tile with a swizzle, say, which is no sum of the two."""
        if loop.range is None or any(self.block.row(e) is None for e in (loop.range.start, loop.range.stop)):
            return False
        changes = assigned(loop)
        return any(
            term.variables & changes and (term.variables & self.own or _of_thread(term))
            for node in walk(loop.body)
            if isinstance(node, Op) and node.kind in ACCESSES
            for expr in expressions_of(node)
            if expr.variables & changes
            for term in _terms(expr)
        )

    def seq(self, seq: Seq, values: Values) -> Seq:
        """What is done with values known before it, which are brought up to date."""
        found: list[Node] = []
        for node in seq.nodes:
            if not _is_plain_fence(node):
                found += self._node(node, values)
        return Seq(tuple(found))

    def _node(self, node: Node, values: Values) -> Iterable[Node]:
        if isinstance(node, Seq):
            return self.seq(node, values).nodes
        if id(node) in self.loops or id(node) in self.mixing:
            assert isinstance(node, Loop)
            new = self._turns(node, values)
            if new is None and node.range is None:  # of ``loops`` alone
                new = self._sometime(node, values)
            if new is not None:
                return new
        if isinstance(node, Loop):
            if not node.once:
                _forget(values, assigned(node))
            node = self._with(node, values)
            assert isinstance(node, Loop)
            made: Node = replace(node, body=self.seq(node.body, dict(values)))
        elif isinstance(node, Branch):
            condition = self._put(node.condition, values)
            arms = [self.seq(arm, dict(values)) for arm in (node.then, node.orelse)]
            made = Branch(condition, arms[0], arms[1], node.span)
        else:
            made = self._with(node, values)
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    known = _substituted(value, values)
                    if self.block.row(known) is not None:
                        values[target] = known
                    else:
                        values.pop(target, None)
            return (made,)
        _forget(values, assigned(node))
        return (made,)

    def _with(self, node: Node, values: Values) -> Node:
        return with_own_expressions(node, lambda expr: self._put(expr, values))

    def _put(self, expr: Expr, values: Values) -> Expr:
        """With what threads have each for itself; the rest is followed better as variables."""
        own = {v: e for v, e in values.items() if v in self.own and isinstance(self.block.row(e), list)}
        return _substituted(expr, own) if own else expr

    def _turns(self, loop: Loop, values: Values) -> Iterable[Node] | None:
        """All turns of a loop; None where they cannot be followed."""
        if loop.range is not None and all(
            self.block.row(_substituted(e, values)) is None for e in (loop.range.start, loop.range.stop)
        ):
            return None
        run = _Run(self.block, dict(values), _MOST_NODES - self.nodes)
        try:
            run.loop(loop, (self.block.all, None))
        except _TooMuch:
            return None
        run.flush()
        self.nodes += len(run.made)
        after = {v: e for v, e in run.values.items() if v in assigned(loop)}
        _forget(values, assigned(loop))
        values.update({v: e for v, e in after.items() if self.block.row(e) is not None})
        if after:
            run.made.append(Assign(tuple(after), tuple(after.values())))
        return run.made

    def _sometime(self, loop: Loop, values: Values) -> Iterable[Node] | None:
        """A loop of accesses alone that threads leave each by itself."""
        inner = {node.label for node in walk(loop) if isinstance(node, Loop)}
        accesses = []
        leaves = False
        for node in walk(loop):
            if isinstance(node, Op) and not _is_plain_fence(node):
                if node.kind not in ACCESSES:
                    return None
                accesses.append(node)
            elif isinstance(node, Jump):
                if node.label not in inner:
                    return None
                leaves = leaves or not node.again
            elif not isinstance(node, (Op, Seq, Assign, Branch, Loop)):
                return None
        if not leaves:
            return None
        changed = assigned(loop)
        lost = {v: unknown(v) for v in changed}
        _forget(values, changed)
        known = {v: e for v, e in values.items() if v in self.own} | lost
        parts = tuple(with_own_expressions(op, lambda expr: _substituted(expr, known)) for op in accesses)
        made: list[Node] = [Branch(unknown(loop.label, 1), Seq(parts), Seq(()), loop.span)] if parts else []
        if changed:
            made.append(Assign(tuple(changed), tuple(lost.values())))
        return made


class _Run:
    """Follows all threads through the turns of a loop. made: what they do there."""

    def __init__(self, block: Block, values: Values, room: int) -> None:
        self.block = block
        self.values = values
        self.room = room
        self.made: list[Node] = []
        self.waiting: list[Node] = []  # to be done by those of ``whose``
        self.whose: Some = (block.all, None)
        self.again: dict[int, list[Some]] = {}
        self.out: dict[int, list[Some]] = {}

    def loop(self, loop: Loop, some: Some) -> Some:
        """Gives those who come behind it."""
        stop = None if loop.range is None else _substituted(loop.range.stop, self.values)
        if loop.range is not None:
            self.values[loop.range.index] = _substituted(loop.range.start, self.values)
        self.out[loop.label] = []
        left = some
        for _ in range(_MOST_TURNS):
            if loop.range is not None and stop is not None:
                left, over = self._parted(_before(self.values[loop.range.index], stop, loop), left)
                self.out[loop.label].append(over)
            if not left[0]:
                break
            self.again[loop.label] = []
            left = self.node(loop.body, left)
            if loop.once:
                self.out[loop.label].append(left)
                break
            left = self._united([left, *self.again[loop.label]], some)
            if loop.range is not None:
                index = self.values[loop.range.index]
                step = const(loop.range.step, index.bits)
                self.values[loop.range.index] = self._level(apply("add", index, step, bits=index.bits))
        else:
            raise _TooMuch
        return self._united(self.out[loop.label], some)

    def node(self, node: Node, some: Some) -> Some:
        """What these threads do in it; gives those who come to its end."""
        if isinstance(node, Seq):
            for inner in node.nodes:
                if some[0]:
                    some = self.node(inner, some)
        elif isinstance(node, Op):
            if not _is_plain_fence(node):
                self._do(with_own_expressions(node, self._value), some)
        elif isinstance(node, Assign):
            self._assign(node, some)
        elif isinstance(node, Branch):
            return self._branch(node, some)
        elif isinstance(node, Loop):
            return self.loop(node, some)
        elif isinstance(node, Jump) and node.label in self.out:
            (self.again if node.again else self.out)[node.label].append(some)
            return 0, some[1]
        else:
            raise _TooMuch
        return some

    def _branch(self, node: Branch, some: Some) -> Some:
        condition = self._value(node.condition)
        if self.block.row(condition) is None:
            for arm in (node.then, node.orelse):
                if any(not isinstance(n, (Seq, Branch)) and not _is_access(n) for n in walk(arm)):
                    raise _TooMuch
            self._do(self._whole(node), some)
            return some
        then, rest = self._parted(condition, some)
        return self._united([self.node(node.then, then), self.node(node.orelse, rest)], some)

    def _whole(self, node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(self._whole(inner) for inner in node.nodes if not _is_plain_fence(inner)))
        if isinstance(node, Branch):
            arms = [self._whole(arm) for arm in (node.then, node.orelse)]
            assert isinstance(arms[0], Seq) and isinstance(arms[1], Seq)
            return Branch(self._value(node.condition), arms[0], arms[1], node.span)
        return with_own_expressions(node, self._value)

    def _assign(self, node: Assign, some: Some) -> None:
        if any(value.op in _READ for value in node.values):
            raise _TooMuch  # what is read now is not what is read later
        new = [self._value(value) for value in node.values]
        for target, value in zip(node.targets, new, strict=True):
            if some[1] is not None:
                before = self.values.get(target, var(target, value.bits))
                value = apply("select", some[1], value, before, bits=value.bits)
            self.values[target] = self._level(value)

    def _value(self, expr: Expr) -> Expr:
        return self._level(_substituted(expr, self.values))

    def _level(self, expr: Expr) -> Expr:
        row = self.block.row(expr)
        return const(row, expr.bits) if isinstance(row, int) else expr

    def _parted(self, condition: Expr, some: Some) -> tuple[Some, Some]:
        row = self.block.row(condition)
        if row is None:
            raise _TooMuch
        taken = self.block.where(row) & some[0]
        if taken == some[0]:
            return some, (0, None)
        if not taken:
            return (0, None), some
        other = apply("not", condition, bits=1)
        return (taken, _both(some[1], condition)), (some[0] & ~taken, _both(some[1], other))

    @staticmethod
    def _united(parts: list[Some], all: Some) -> Some:
        there = [part for part in parts if part[0]]
        mask = 0
        condition: Expr | None = None
        for part in there:
            mask |= part[0]
            if condition is None:
                condition = part[1]
            elif part[1] is not None:
                condition = apply("or", condition, part[1], bits=1)
        return all if mask == all[0] else (mask, condition)

    def _do(self, node: Node, some: Some) -> None:
        if some[0] != self.whose[0]:
            self.flush()
            self.whose = some
        self.room -= 1
        if self.room < 0:
            raise _TooMuch
        self.waiting.append(node)

    def flush(self) -> None:
        if self.waiting and self.whose[1] is None:
            self.made += self.waiting
        elif self.waiting:
            first = self.waiting[0]
            span = first.span if isinstance(first, (Op, Branch)) else None
            assert self.whose[1] is not None and span is not None
            self.made.append(Branch(self.whose[1], Seq(tuple(self.waiting)), Seq(()), span))
        self.waiting = []


def _both(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else apply("and", a, b, bits=1)


def _before(index: Expr, stop: Expr, loop: Loop) -> Expr:
    assert loop.range is not None
    kind = "s" if loop.range.signed else "u"
    return apply(f"{'lt' if loop.range.step > 0 else 'gt'}.{kind}", index, stop, bits=1)


def _is_access(node: Node) -> bool:
    return isinstance(node, Op) and (node.kind in ACCESSES or _is_plain_fence(node))


def _substituted(expr: Expr, values: Values) -> Expr:
    if not values or not expr.variables & values.keys():
        return expr
    return substitute(expr, lambda e: values.get(e.value) if e.op == "var" else None, {})


def _forget(values: Values, variables: Iterable[int]) -> None:
    for variable in variables:
        values.pop(variable, None)


def _terms(expr: Expr) -> Iterator[Expr]:
    """What is added up in an address, each without its constant factor."""
    if expr.op in ("add", "sub"):
        for arg in expr.args:
            yield from _terms(arg)
    elif expr.op in CONVERSIONS:
        yield from _terms(expr.args[0])
    elif expr.op in ("mul", "shl") and any(arg.op == "const" for arg in expr.args):
        yield from _terms(expr.args[0] if expr.args[1].op == "const" else expr.args[1])
    else:
        yield expr


@lru_cache(4096)
def _of_thread(expr: Expr) -> bool:
    return any(e.op in ("tid", "elected") for e in nodes(expr))


def of_threads(kernel: Kernel) -> frozenset[int]:
    """The variables that threads may have each for itself, as their numbers say."""
    made: list[tuple[int, Expr]] = []
    for node in kernel.nodes:
        if isinstance(node, Assign):
            made += zip(node.targets, node.values, strict=True)
        elif isinstance(node, Loop) and node.range is not None:
            made.append((node.range.index, node.range.start))
    found: set[int] = set()
    before = -1
    while len(found) != before:
        before = len(found)
        found |= {target for target, value in made if _of_thread(value) or value.variables & found}
    return frozenset(found)
