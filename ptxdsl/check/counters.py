"""Loop counters: which variables grow without bound, what depends on them, and after how many turns nothing is new.

A counter is a variable that a loop increments. Counters that are compared with the same trip count, or with each other,
are of one *group*: only their differences matter, so a state in which all of a group are further on by a common period
is the same state, once all are past the constants they are compared with. The groups (``counted_loops.py``), the
*period* (counters that feed ``% 3`` repeat after 3 turns) and the *threshold* are found from the program's text.

An expression's *rates* are, for each group, ``(turns, growth)``: when the group's counters grow by ``turns``, the value
grows by ``growth``. An expression whose growth is not linear has none (``IRREGULAR``); a group that feeds such a one
is never shifted.
"""

from __future__ import annotations

from math import lcm

from ptxdsl.check.counted_loops import CountedLoops
from ptxdsl.check.learned import FARTHEST, Learned
from ptxdsl.check.rates import IRREGULAR, Rates, combined, divided, keeps, leaves, signs, unknown_leaf
from ptxdsl.protocol.expressions import Expr
from ptxdsl.protocol.model import Assign, Kernel, Loop, Range, expressions_of

# A constant trip count from here on is taken for any number, as an unknown one.
LARGE_TRIP = 48
TURNS = " turns"  # behind it in the name of that
_THREADS = 1024  # of a block, at most

_COMPARISONS = frozenset({"eq", "ne", *(f"{c}.{s}" for c in ("lt", "le", "gt", "ge") for s in "su")})
_DIVISIONS = frozenset({"floordiv.s", "floordiv.u", "div.s", "div.u"})
_REMAINDERS = frozenset({"mod.s", "mod.u", "rem.s", "rem.u"})
_BOUNDS = frozenset({"min.s", "min.u", "max.s", "max.u"})


class Counters(CountedLoops):
    """period: of all groups.

    threshold: up to which unknown values are told apart. coarse: to tell as few apart as is right. exact: to take no
    constant trip count for an unknown one; large: from where on they are taken so.
    """

    def __init__(self, kernel: Kernel, learned: Learned, coarse: bool = False, exact: bool = False) -> None:
        super().__init__(kernel)
        self.large = 1 << 62 if exact else LARGE_TRIP
        self.period = 1
        self.coarse = coarse
        self.kernel = kernel
        self.restarting: set[int] | None = None  # see ``learned.py``
        self.threshold = 0 if coarse else 2
        self._values: dict[int, list[Expr]] = {}  # what variables are assigned
        self._past: list[tuple[list[int], int]] = []  # groups, and beyond which value nothing new comes to be
        self._rates: dict[Expr, Rates] = {}
        self.irregular: set[int] = set()
        self._open: set[int] = set()  # variables whose value is not known before the launch, or counts
        self.derived: dict[int, Rates] = {}
        for a, b in learned.united:
            self.unite(a, b)
        while self.united:  # groups have the numbers that they end with
            self.united = False
            self._look_through(kernel)
        self.thresholds: dict[int, int] = {}
        for counter, value in (*((c, v) for own, v in self._past for c in own), *learned.past.items()):
            self.tell_apart(counter, value)
        self.irregular.update(map(self.find, learned.followed))

    def _look_through(self, kernel: Kernel) -> None:
        for found in (self.derived, self.irregular, self._values, self._past):
            found.clear()
        for _ in range(3):
            self._rates.clear()
            if not self._derive(kernel):
                break
        self._find_open(kernel)
        self._survey(kernel)

    def tell_apart(self, counter: int, value: int) -> None:
        """Makes values of a group's counters that are no greater than this one all different."""
        group = self.find(counter)
        self.thresholds[group] = max(self.thresholds.get(group, 0), value)
        self.irregular.update((group,) if value > FARTHEST else ())

    def past(self, group: int) -> int:
        """The value of a group's counters beyond which they are alike, if they differ by a multiple of the period."""
        return max(self.threshold, self.thresholds.get(group, 0))

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
        if not expr.args or op in ("answer", "held"):
            return {}
        parts = [self.rates(arg) for arg in expr.args]
        if any(-1 in part for part in parts):
            return IRREGULAR
        if op in ("add", "sub"):
            return combined(parts[0], parts[1], 1 if op == "add" else -1)
        if keeps(expr):
            return parts[0]
        last = expr.args[-1]
        constant = last.value if last.op == "const" else None
        if not any(parts):
            return {}
        if op == "trunc":  # to few bits
            return {g: (turns, 0) for g, (turns, _) in divided(parts[0], 1 << expr.bits).items()}
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
                return divided(first, constant if op in _DIVISIONS else 1 << min(constant, 62))
            if op in _REMAINDERS or (op == "and" and constant & (constant + 1) == 0):
                divisor = constant if op in _REMAINDERS else constant + 1
                return {g: (turns, 0) for g, (turns, _) in divided(first, divisor).items()}
        if op in _COMPARISONS:
            return {g: (turns, 0) for g, (turns, _) in combined(first, parts[1], -1).items()}
        if op in _BOUNDS and constant is not None:
            return {g: (turns, 0 if op.startswith("min") else growth) for g, (turns, growth) in first.items()}
        if op == "select" and all(growth == 0 for _, growth in first.values()):
            a, b = combined(parts[1], first, 1), combined(parts[2], first, 1)
            both = combined(a, b, -1)
            return a if all(growth == 0 for _, growth in both.values()) else IRREGULAR
        if all(growth == 0 for part in parts for _, growth in part.values()):
            result: Rates = {}
            for part in parts:
                result = combined(result, part, 1)
            return result
        if any(unknown_leaf(leaf) for leaf in leaves(expr)):
            return {g: (1, 0) for part in parts for g in part}  # an atom with the counter in it: seen where it is made
        return IRREGULAR

    def _derive(self, kernel: Kernel) -> bool:
        """Rates of variables that are no counters but get their values from some; whether there was anything new."""
        changed = False
        for index, (turn, step) in self.moved_by.items():
            if index not in self.parent:
                rates = {self.find(turn): (1, step)}
                changed |= self.derived.get(index) != rates
                self.derived[index] = rates
        for node in kernel.nodes:
            if not isinstance(node, Assign):
                continue
            for target, value in zip(node.targets, node.values, strict=True):
                if target in self.parent or target in self.followed:
                    continue
                rates = self.rates(value)
                grown = {g: rate for g, rate in rates.items() if rate[1]} if -1 not in rates else IRREGULAR
                before = self.derived.get(target, {})
                if grown and grown != before:
                    self.derived[target] = IRREGULAR if before else grown
                    changed = True
        return changed

    def _find_open(self, kernel: Kernel) -> None:
        for node in kernel.nodes:
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    self._values.setdefault(target, []).append(value)
            elif isinstance(node, Loop) and node.range is not None:
                self._values.setdefault(node.range.index, []).append(node.range.start)
        assigned = [(target, value) for target, values in self._values.items() for value in values]
        self._open = {*self.parent, *self.derived}
        changed = True
        while changed:
            changed = False
            for target, value in assigned:
                if target not in self._open and self._is_open(value):
                    self._open.add(target)
                    changed = True

    def _is_open(self, expr: Expr) -> bool:
        return any(unknown_leaf(leaf) or (leaf.op == "var" and leaf.value in self._open) for leaf in leaves(expr))

    # ------------------------------------------------------------------------------------------- period, threshold

    def _survey(self, kernel: Kernel) -> None:
        seen: set[Expr] = set()
        for node in kernel.nodes:
            for expr in expressions_of(node):
                self._look(expr, seen)
            if isinstance(node, Loop) and node.range is not None:
                self._bound(node.range, self.turn_of[node.label])

    def _bound(self, range: Range, turn: int) -> None:
        """A loop between constants ends, where large ones are not taken for unknown; one that falls begins."""
        ends = [range.stop] if range.step > 0 else [range.start, range.stop]
        values = [abs(end.value) for end in ends if end.op == "const" and (end.value < self.large or range.step < 0)]
        if values and range.start.op == "const":
            self._past.append(([turn], max(values)))

    def _look(self, root: Expr, seen: set[Expr]) -> None:
        rates = self.rates(root)
        if -1 in rates:
            self.irregular.update(g for leaf in leaves(root) for g in self._groups_of(leaf))
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
            if not self._is_unknown(expr):
                self._settles(expr, groups)
                return
            for at, other in ((a, b), (b, a)) if not self.coarse else ():
                if at.op == "const" and abs(at.value) < LARGE_TRIP and self._is_open(other):
                    self.threshold = max(self.threshold, abs(at.value) + 2)

    def _settles(self, expr: Expr, groups: list[int]) -> None:
        """From which value of its counters on a comparison comes out the same."""
        a, b = expr.args
        for turns, growth in combined(self.rates(a), self.rates(b), -1).values():
            if not growth:
                continue
            if len({*signs(a, 1), *signs(b, -1)}) > 1:  # of counters whose difference may be anything
                self.irregular.update(groups)
                return
            most, other = self._most(a, ()), self._most(b, ())
            if most is None or other is None:
                self.irregular.update(groups)
                return
            self._past.append((groups, (most + other) * turns // abs(growth) + turns))

    def _is_unknown(self, expr: Expr, around: tuple[int, ...] = ()) -> bool:
        """Whether more is unknown of an expression than how far counters are."""
        for leaf in leaves(expr):
            v = leaf.value
            if leaf.op != "var":
                if unknown_leaf(leaf):
                    return True
            elif (
                v in self._open
                and v not in (*self.parent, *around)
                and any(self._is_unknown(value, (*around, v)) for value in self._values.get(v, ()))
            ):
                return True
        return False

    def _most(self, expr: Expr, around: tuple[int, ...]) -> int | None:
        """The largest size of a value while counters are 0; None where that is not seen."""
        op, args = expr.op, expr.args
        if op == "const":
            return abs(int(expr.value))
        if op == "tid":
            return _THREADS
        if op == "var":
            if expr.value in self.parent:
                return 0
            values = self._values.get(expr.value)
            if values is None or expr.value in around:
                return None
            args = tuple(values)
            around = (*around, expr.value)
        if op in _REMAINDERS or op == "and":
            args = args[1:]
        parts = [self._most(arg, around) for arg in args]
        sizes = [part for part in parts if part is not None]
        if len(sizes) < len(parts) or not args:
            return None
        if op in ("mul", "shl"):
            return sizes[0] * (sizes[1] if op == "mul" else 1 << min(sizes[1], 31))
        if op in _DIVISIONS or op.startswith("shr"):
            return sizes[0] + 1
        return max(sizes) if op == "var" else sum(sizes)
