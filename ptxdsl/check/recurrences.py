"""Values that a loop computes anew in each turn in ways that the proof does not follow.

    while work.more():    # tiles of a block, made of quotients of its number
        ...
        work.next()

Which they are need not be known: they are made of what all roles of a block have alike, so roles that begin with the
same and compute the same have the same in the same turn, and what one of them decides by it holds for all. Such a
variable is, after so many turns, an unknown value that hangs on their number, on what the variables began with and on
what the launch says; of its size only the least is known (``least.py``). Where a launch is looked for that shows a
fault, it is computed.

Variables that grow steadily, and those of rings, which have few values, are followed as they are (``counters.py``).
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.check.rates import is_var, leaves, moved
from ptxdsl.protocol.algebra import plain, substitute
from ptxdsl.protocol.expressions import ARITHMETIC, Expr, compute, const, nodes, var
from ptxdsl.protocol.facts import NOTHING, Facts
from ptxdsl.protocol.model import Assign, Branch, Jump, Kernel, Loop, Node, Return, Seq, walk
from ptxdsl.protocol.ranges import loops
from ptxdsl.protocol.rewriting import assigned
from ptxdsl.record import dataclass

_INPUTS = frozenset({"uniform", "cta"})
_ALIKE = frozenset({*_INPUTS, "const", "var", "load"}) | ARITHMETIC.keys() - {"mapa"}
_MOST_NODES = 4000  # of an equation
_MOST_TURNS = 64  # that are computed

Values = dict[int, Expr | None]  # of variables, by those at a turn's beginning; None: not followed
Equations = dict[int, Expr]


@dataclass(frozen=True)
class Recurrence:
    """equations: of a variable, the first, and of all that it hangs on: what they get in a turn; their values are
    var 0, var 1, …, and the next ones are what does not change. low: the least value of the first."""

    equations: tuple[Expr, ...]
    low: int

    def after(self, turns: int, begun: list[int]) -> int | None:
        """Its value, where that can be computed. begun: of the variables, and what does not change."""
        if turns > _MOST_TURNS:
            return None
        values = list(begun)
        for _ in range(turns):
            known: dict[Expr, int | None] = {}
            new = [_computed(equation, values, known) for equation in self.equations]
            if any(value is None for value in new):
                return None
            values[: len(new)] = [value for value in new if value is not None]
        return values[0]


@dataclass(frozen=True)
class Recurrent:
    """A variable of a loop. of: the variables of its equations, itself first; inputs: leaves that do not change."""

    variable: int
    form: Recurrence
    of: tuple[int, ...]
    inputs: tuple[Expr, ...]


def recurrences(kernel: Kernel) -> dict[int, tuple[Recurrent, ...]]:
    """By the labels of loops."""
    found: dict[int, tuple[Recurrent, ...]] = {}
    counted = [node for node in kernel.nodes if isinstance(node, Loop) and not node.once and _counts_turns(node)]
    hidden = {id(loop): cores for loop in counted if (cores := _cores(loop))}
    for loop, facts in loops(kernel.program, NOTHING) if hidden else ():
        own_cores = hidden.get(id(loop), {})
        equations = _equations(loop) if own_cores else {}
        own = _not_followed(equations, own_cores)
        if own:
            lows = _lows(loop, equations, facts)
            found[loop.label] = tuple(_recurrent(v, equations, lows) for v in sorted(own))
    return found


def _counts_turns(loop: Loop) -> bool:
    """Whether the counter of its turns is 0, 1, …"""
    span = loop.range
    return span is None or span.start.op != "const" or (span.start.value == 0 and span.step == 1)


def _recurrent(variable: int, equations: Equations, lows: Mapping[int, int]) -> Recurrent:
    order = [variable]
    inputs: dict[Expr, None] = {}
    for v in order:  # grows
        for leaf in leaves(equations.get(v, const(0))):
            if leaf.op == "var" and leaf.value not in order:
                order.append(leaf.value)
            elif leaf.op in _INPUTS:
                inputs[leaf] = None
    places = {leaf: len(order) + place for place, leaf in enumerate(inputs)}

    def renamed(expr: Expr) -> Expr | None:
        place = order.index(expr.value) if expr.op == "var" else places.get(expr)
        return None if place is None else var(place, expr.bits)

    known: dict[Expr, Expr] = {}
    form = [substitute(equations[v], renamed, known) if v in equations else var(i) for i, v in enumerate(order)]
    return Recurrent(variable, Recurrence(tuple(form), lows[variable]), tuple(order), tuple(inputs))


def _computed(expr: Expr, values: list[int], known: dict[Expr, int | None]) -> int | None:
    if expr.op == "const":
        return int(expr.value)
    if expr.op == "var":
        return values[int(expr.value)]
    if expr not in known:
        args = [_computed(arg, values, known) for arg in expr.args]
        ints = [arg for arg in args if arg is not None]
        there = expr.op in ARITHMETIC and len(ints) == len(args)
        known[expr] = compute(expr.op, ints, expr.bits, expr.args[0].bits) if there else None
    return known[expr]


# --------------------------------------------------------------------------------------------------- which there are


def _cores(loop: Loop) -> dict[int, set[int]]:
    """Variables that hang on themselves in such ways, each with those that hang on it.

    What branches decide is no part of that: it is decided, and each way followed.
    """
    made: dict[int, list[Expr]] = {}
    for node in walk(loop.body):
        if isinstance(node, Assign):
            for target, value in zip(node.targets, node.values, strict=True):
                made.setdefault(target, []).append(value)
    if not any(_is_input(leaf) for values in made.values() for value in values for leaf in leaves(value)):
        return {}
    reached = _closed({v: {w for e in values for w in e.variables} for v, values in made.items()})
    cores = {}
    for v in reached:
        together = [w for w in reached[v] if v in reached.get(w, ())]
        values = [(w, value) for w in together for value in made[w]]
        hidden = any(len(made[w]) > 1 or not _is_steady(w, value) for w, value in values)
        if hidden and any(_is_input(leaf) for _, value in values for leaf in leaves(value)):
            cores[v] = {w for w in reached if v in reached[w]}
    return cores


def _not_followed(equations: Equations, cores: dict[int, set[int]]) -> set[int]:
    """The variables of equations that do so, and those made of them."""
    own = cores.keys() & equations.keys()
    made_of = {w for v in own for w in cores[v]}
    return {v for v, e in equations.items() if v in own or (e.op != "var" and v in made_of)}


def _is_input(leaf: Expr) -> bool:
    return leaf.op in _INPUTS or leaf.op == "load"


def _closed(graph: Mapping[int, set[int]]) -> dict[int, set[int]]:
    """What is come to from each."""
    found = {}
    for start in graph:
        reached: set[int] = set()
        work = [start]
        while work:
            new = graph.get(work.pop(), set()) - reached
            reached |= new
            work += new
        found[start] = reached
    return found


def _is_steady(variable: int, equation: Expr) -> bool:
    """Whether it grows by the same in each turn."""
    if equation.op == "const" or moved(equation) is not None:
        return True
    if equation.op != "add":
        return False
    a, b = equation.args
    return any(is_var(x, variable) and not y.variables for x, y in ((a, b), (b, a)))


def _lows(loop: Loop, equations: Equations, facts: Facts) -> dict[int, int]:
    """The least values of variables, by induction over the turns."""
    from ptxdsl.check.least import NONE, least  # for what does not go on by the same each turn

    begun = {v.value: value for v, value in facts.values.items()}
    if loop.range is not None:
        begun[loop.range.index] = loop.range.start
    there = {v for equation in equations.values() for v in equation.variables} | equations.keys()
    lows = {v: least(begun[v], {}) if v in begun else NONE for v in there}
    changed = True
    while changed:
        changed = False
        for v, equation in equations.items():
            found = least(equation, lows) if lows[v] > NONE else NONE
            if found < lows[v]:
                lows[v] = min(found, 1) if found >= 0 else NONE
                changed = True
    return lows


# --------------------------------------------------------------------------------------------------- what a turn does


def _equations(loop: Loop) -> Equations:
    """What variables that are assigned once, as the last thing in a turn, get by it."""
    body = list(loop.body.nodes)
    again = Jump(loop.label, True)
    if body and body[-1] == again:
        body.pop()
    if any(isinstance(node, Jump) and node == again for part in body for node in walk(part)):
        return {}
    last: set[int] = set()
    while body and isinstance(node := body[-1], Assign):
        last |= set(node.targets)
        body.pop()
    values: Values = {}
    if not _done(loop.body, values, loop.label):
        return {}
    often = [v for node in walk(loop.body) if isinstance(node, Assign) for v in node.targets]
    equations = {v: e for v in last if often.count(v) == 1 and (e := values[v]) is not None}
    span = loop.range
    if span is not None and span.start.op == "const":
        index = var(span.index, span.start.bits)
        equations[span.index] = plain("add", index, const(span.step, index.bits), bits=index.bits)
    changing = assigned(loop)
    while True:  # without those made of what is not followed
        bad = {v for v, e in equations.items() if (e.variables & changing) - equations.keys()}
        if not bad:
            return equations
        equations = {v: e for v, e in equations.items() if v not in bad}


def _done(node: Node, values: Values, label: int) -> bool:
    """Brings values up to date; False where the rest of the turn is not come to."""
    if isinstance(node, Seq):
        return all(_done(inner, values, label) for inner in node.nodes)
    if isinstance(node, Assign):
        values.update(zip(node.targets, [_put(e, values) for e in node.values], strict=True))
    elif isinstance(node, Branch):
        return _branch(node, values, label)
    elif isinstance(node, Loop):
        values.update(dict.fromkeys(assigned(node)))
    elif isinstance(node, Return):
        return False
    elif isinstance(node, Jump):
        return node.label == label and node.again
    return True


def _branch(node: Branch, values: Values, label: int) -> bool:
    condition = _put(node.condition, values)
    then, orelse = dict(values), dict(values)
    there = [_done(node.then, then, label), _done(node.orelse, orelse, label)]
    if sum(there) < 2:
        values.update(then if there[0] else orelse)
        return any(there)
    for v in then.keys() | orelse.keys():
        either = then.get(v) or orelse.get(v)
        before = None if either is None else var(v, either.bits)
        a, b = then.get(v, before), orelse.get(v, before)
        if a is not b and condition is not None and a is not None and b is not None:
            a = b = plain("select", condition, a, b, bits=a.bits)
        values[v] = a if a is b else None
    return True


def _put(expr: Expr, values: Values) -> Expr | None:
    """The expression by values at a turn's beginning."""
    if any(values.get(v, expr) is None for v in expr.variables):
        return None
    new = substitute(expr, lambda e: values.get(e.value) if e.op == "var" else None, {})
    followed = all(node.op in _ALIKE and number < _MOST_NODES for number, node in enumerate(nodes(new)))
    return new if followed else None
