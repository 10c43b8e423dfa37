"""Loop counters: which variables grow without bound, what depends on them, and after how many turns nothing is new.

A counter is a variable that a loop increments. Counters that are compared with the same trip count, or with each other,
are of one *group*: only their differences matter, so a state in which all of a group are further on by a common period
is the same state, once all are past the constants they are compared with. Here the groups, the *period* (counters that
feed ``% 3`` repeat after 3 turns) and the *threshold* are found from the program's text.

An expression's *rates* are, for each group, ``(turns, growth)``: when the group's counters grow by ``turns``, the value
grows by ``growth``. An expression whose growth is not linear has none (``IRREGULAR``); a group that feeds such a one
is never shifted.
"""

from __future__ import annotations

from math import gcd, lcm

from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Kernel, Loop, expressions_of, walk

Rates = dict[int, tuple[int, int]]
IRREGULAR: Rates = {-1: (1, 0)}

# A constant trip count from here on is taken for any number, as an unknown one.
LARGE_TRIP = 48

_COMPARISONS = frozenset({"eq", "ne", *(f"{c}.{s}" for c in ("lt", "le", "gt", "ge") for s in "su")})
_SAME = frozenset({"ext.s", "ext.u", "trunc"})
_DIVISIONS = frozenset({"floordiv.s", "floordiv.u", "div.s", "div.u"})
_REMAINDERS = frozenset({"mod.s", "mod.u", "rem.s", "rem.u"})
_BOUNDS = frozenset({"min.s", "min.u", "max.s", "max.u"})


class Counters:
    """group: of each counter. period, threshold: of all groups. inductive: see ``_find_inductive``."""

    def __init__(self, kernel: Kernel) -> None:
        self.period = 1
        self.threshold = 2
        self.fresh = kernel.variables
        self.turn_of: dict[int, int] = {}  # loop label → the variable that counts its turns
        self.start_of: dict[int, int] = {}  # of a range that starts at no constant: the variable that keeps its start
        self.inductive: dict[tuple[int, int], tuple[int, Expr]] = {}  # (label, variable) → (its start's variable, step)
        self._parent: dict[int, int] = {}
        self._rates: dict[Expr, Rates] = {}
        self._moved_by: dict[int, tuple[int, int]] = {}  # a range's index → the counter of its turns, the step
        self.irregular: set[int] = set()
        self._open: set[int] = set()  # variables whose value is not known before the launch, or counts
        self.derived: dict[int, Rates] = {}
        self._loops(kernel)
        self._components(kernel)
        for _ in range(3):
            self._rates.clear()
            if not self._derive(kernel):
                break
        self._find_open(kernel)
        self._survey(kernel)

    # ------------------------------------------------------------------------------------------------------ groups

    def group(self, variable: int) -> int | None:
        """The group of a counter, None of any other variable."""
        return self._find(variable) if variable in self._parent else None

    def _find(self, v: int) -> int:
        while self._parent[v] != v:
            v = self._parent[v]
        return v

    def unite(self, a: int, b: int) -> None:
        a, b = self._find(a), self._find(b)
        if a != b:
            self._parent[max(a, b)] = min(a, b)

    def _loops(self, kernel: Kernel) -> None:
        by_stop: dict[Expr, int] = {}
        by_range: dict[tuple[Expr, Expr], int] = {}
        by_start: dict[tuple[Expr | None, Expr], int] = {}
        starts: dict[int, Expr] = {}
        for node in walk(kernel.program):
            if isinstance(node, Assign):
                starts.update(zip(node.targets, node.values, strict=True))
            if not isinstance(node, Loop) or node.once:
                continue
            if node.range is not None and node.range.start.op != "const":
                turn, self.start_of[node.label] = self.fresh, self.fresh + 1
                self.fresh += 2
                self._parent[turn] = turn
                self.unite(turn, by_range.setdefault((node.range.start, node.range.stop), turn))
                self._moved_by[node.range.index] = turn, node.range.step
            elif node.range is not None:
                turn = node.range.index
                self._parent.setdefault(turn, turn)
                other = by_stop.setdefault(node.range.stop, turn)
                if node.range.stop.op != "const":
                    self.unite(turn, other)
            else:
                turn = self.fresh
                self.fresh += 1
                self._parent[turn] = turn
            self.turn_of[node.label] = turn
            self._find_inductive(node, turn, starts, by_start)

    def _find_inductive(
        self, loop: Loop, turn: int, starts: dict[int, Expr], known: dict[tuple[Expr | None, Expr], int]
    ) -> None:
        """Variables that a loop advances by the same unknown amount every turn: ``tile += grid_dim.x``.

        They are the start plus turns times the step, so that roles that do the same have the same value.
        """
        assigned: dict[int, list[Expr]] = {}
        for node in walk(loop.body):
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    assigned.setdefault(target, []).append(value)
        for variable, values in assigned.items():
            if len(values) != 1 or values[0].op != "add":
                continue
            a, b = values[0].args
            step = b if _is_var(a, variable) else a if _is_var(b, variable) else None
            if step is None or step.op == "const" or any(e.op in ("var", "unknown", "tid") for e in _leaves(step)):
                continue
            self.inductive[loop.label, variable] = self.fresh, step
            self.fresh += 1
            self.unite(turn, known.setdefault((starts.get(variable), step), turn))

    def _components(self, kernel: Kernel) -> None:
        """Variables that are assigned from one another plus a constant; counters if one of the constants is not 0."""
        edges: list[tuple[int, int, int]] = []
        for node in walk(kernel.program):
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    moved = _moved(value)
                    if moved is not None:
                        edges.append((target, *moved))
        growing = {v for target, source, by in edges if by for v in (target, source)}
        changed = True
        while changed:
            changed = False
            for target, source, _ in edges:
                if (target in growing or source in growing) and not {target, source} <= growing:
                    growing |= {target, source}
                    changed = True
        for v in growing:
            self._parent.setdefault(v, v)
        for target, source, _ in edges:
            if target in growing:
                self.unite(target, source)

    # ------------------------------------------------------------------------------------------------------- rates

    def rates(self, expr: Expr) -> Rates:
        found = self._rates.get(expr)
        if found is None:
            found = self._rates[expr] = self._found(expr)
        return found

    def _found(self, expr: Expr) -> Rates:
        op = expr.op
        if op == "var":
            group = self.group(expr.value)
            return {group: (1, 1)} if group is not None else self.derived.get(expr.value, {})
        if not expr.args:
            return {}
        parts = [self.rates(arg) for arg in expr.args]
        if any(-1 in part for part in parts):
            return IRREGULAR
        if op in ("add", "sub"):
            return _sum(parts[0], parts[1], 1 if op == "add" else -1)
        if op in _SAME:
            return parts[0]
        last = expr.args[-1]
        constant = last.value if last.op == "const" else None
        if not any(parts):
            return {}
        if op == "mul" and constant is None and expr.args[0].op == "const":
            constant, parts = expr.args[0].value, parts[::-1]
        return self._other(expr, parts, constant)

    def _other(self, expr: Expr, parts: list[Rates], constant: int | None) -> Rates:
        op, first = expr.op, parts[0]
        if op in ("mul", "shl") and constant is not None:
            factor = constant if op == "mul" else 1 << min(max(constant, 0), 62)
            return {g: (turns, growth * factor) for g, (turns, growth) in first.items()}
        if constant is not None and constant > 0:
            if op in _DIVISIONS or op in ("shr.s", "shr.u"):
                return _divided(first, constant if op in _DIVISIONS else 1 << min(constant, 62))
            if op in _REMAINDERS or (op == "and" and constant & (constant + 1) == 0):
                divisor = constant if op in _REMAINDERS else constant + 1
                return {g: (turns, 0) for g, (turns, _) in _divided(first, divisor).items()}
        if op in _COMPARISONS:
            return {g: (turns, 0) for g, (turns, _) in _sum(first, parts[1], -1).items()}
        if op in _BOUNDS and constant is not None:
            return {g: (turns, 0 if op.startswith("min") else growth) for g, (turns, growth) in first.items()}
        if op == "select" and all(growth == 0 for _, growth in first.values()):
            a, b = _sum(parts[1], first, 1), _sum(parts[2], first, 1)
            both = _sum(a, b, -1)
            return a if all(growth == 0 for _, growth in both.values()) else IRREGULAR
        if all(growth == 0 for part in parts for _, growth in part.values()):
            result: Rates = {}
            for part in parts:
                result = _sum(result, part, 1)
            return result
        if any(_unknown_leaf(leaf) for leaf in _leaves(expr)):
            return {g: (1, 0) for part in parts for g in part}  # an atom with the counter in it: seen where it is made
        return IRREGULAR

    def _derive(self, kernel: Kernel) -> bool:
        """Rates of variables that are no counters but get their values from some; whether there was anything new."""
        changed = False
        for index, (turn, step) in self._moved_by.items():
            if index not in self._parent:
                rates = {self._find(turn): (1, step)}
                changed |= self.derived.get(index) != rates
                self.derived[index] = rates
        for node in walk(kernel.program):
            if not isinstance(node, Assign):
                continue
            for target, value in zip(node.targets, node.values, strict=True):
                if target in self._parent:
                    continue
                rates = self.rates(value)
                grown = {g: rate for g, rate in rates.items() if rate[1]} if -1 not in rates else IRREGULAR
                before = self.derived.get(target, {})
                if grown and grown != before:
                    self.derived[target] = IRREGULAR if before else grown
                    changed = True
        return changed

    def _find_open(self, kernel: Kernel) -> None:
        assigned = [
            (target, value)
            for node in walk(kernel.program)
            if isinstance(node, Assign)
            for target, value in zip(node.targets, node.values, strict=True)
        ]
        self._open = {*self._parent, *self.derived}
        changed = True
        while changed:
            changed = False
            for target, value in assigned:
                if target not in self._open and self._is_open(value):
                    self._open.add(target)
                    changed = True

    def _is_open(self, expr: Expr) -> bool:
        return any(_unknown_leaf(leaf) or (leaf.op == "var" and leaf.value in self._open) for leaf in _leaves(expr))

    # ------------------------------------------------------------------------------------------- period, threshold

    def _survey(self, kernel: Kernel) -> None:
        seen: set[Expr] = set()
        for node in walk(kernel.program):
            for expr in expressions_of(node):
                self._look(expr, seen)

    def _look(self, root: Expr, seen: set[Expr]) -> None:
        rates = self.rates(root)
        if -1 in rates:
            self.irregular.update(g for leaf in _leaves(root) for g in self._groups_of(leaf))
        else:
            for turns, _ in rates.values():
                self.period = lcm(self.period, turns)
        pending = [root]
        while pending:
            expr = pending.pop()
            if expr in seen:
                continue
            seen.add(expr)
            pending.extend(expr.args)
            if len(expr.args) == 2:
                self._pair(expr)

    def _groups_of(self, leaf: Expr) -> list[int]:
        return [g for g in self.rates(leaf) if g >= 0] if leaf.op == "var" else []

    def _pair(self, expr: Expr) -> None:
        a, b = expr.args
        groups = [g for g in {**self.rates(a), **self.rates(b)} if g >= 0]
        for group in groups[1:]:
            self.unite(groups[0], group)
        if expr.op in _COMPARISONS or expr.op in _BOUNDS:
            for at, other in ((a, b), (b, a)):
                if at.op == "const" and abs(at.value) < LARGE_TRIP and self._is_open(other):
                    self.threshold = max(self.threshold, abs(at.value) + 2)


def _is_var(expr: Expr, variable: int) -> bool:
    return expr.op == "var" and expr.value == variable


def _moved(expr: Expr) -> tuple[int, int] | None:
    """``(variable, constant)`` of a variable plus a constant."""
    by = 0
    while expr.op in ("add", "sub") or expr.op in _SAME:
        if expr.op in _SAME:
            expr = expr.args[0]
            continue
        a, b = expr.args
        if b.op == "const":
            by += b.value if expr.op == "add" else -b.value
            expr = a
        elif a.op == "const" and expr.op == "add":
            by += a.value
            expr = b
        else:
            return None
    return (expr.value, by) if expr.op == "var" else None


def _leaves(expr: Expr) -> list[Expr]:
    if not expr.args:
        return [expr]
    found = [leaf for arg in expr.args for leaf in _leaves(arg)]
    return [expr, *found] if expr.op == "load" else found


def _unknown_leaf(leaf: Expr) -> bool:
    return leaf.op in ("uniform", "cta", "load")


def _sum(a: Rates, b: Rates, sign: int) -> Rates:
    result = dict(a)
    for g, (turns, growth) in b.items():
        if g in result:
            other, grown = result[g]
            common = lcm(other, turns)
            result[g] = common, grown * (common // other) + sign * growth * (common // turns)
        else:
            result[g] = turns, sign * growth
    return result


def _divided(rates: Rates, divisor: int) -> Rates:
    result: Rates = {}
    for g, (turns, growth) in rates.items():
        times = divisor // gcd(growth, divisor) if growth else 1
        result[g] = turns * times, growth * times // divisor
    return result
