"""Which counters belong together: loops that begin, end or compute alike, and variables made of one another."""

from __future__ import annotations

from ptxdsl.check.rates import is_var, leaves, moved
from ptxdsl.check.recurrences import Recurrence, recurrences
from ptxdsl.check.turn_ends import once_a_turn
from ptxdsl.protocol.algebra import substitute
from ptxdsl.protocol.answers import loops_of_answers
from ptxdsl.protocol.expressions import Expr, var
from ptxdsl.protocol.model import Assign, Kernel, Loop


class CountedLoops:
    """fresh: the number of variables, with those that count and keep here. inductive: see ``_find_inductive``.

    parent: a forest of counters, a tree for each group. united: whether that has changed.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.fresh = kernel.variables
        self.turn_of: dict[int, int] = {}  # loop label → the variable that counts its turns
        self.start_of: dict[int, int] = {}  # of a range that starts at no constant: the variable that keeps its start
        self.inductive: dict[tuple[int, int], tuple[int, Expr]] = {}  # (label, variable) → (its start's variable, step)
        self.recurrent = recurrences(kernel)
        self.begun: dict[tuple[int, int], int] = {}  # (label, variable of a recurrence) → what it began with
        self.followed = {r.variable: r.form for own in self.recurrent.values() for r in own}
        self._names: dict[int, Expr] = {}  # of variables that roles compute alike: one of them
        by_form: dict[Recurrence, int] = {}
        for variable, form in self.followed.items():
            self._named(variable, by_form.setdefault(form, variable))
        self.parent: dict[int, int] = {}
        self.united = True
        self.moved_by: dict[int, tuple[int, int]] = {}  # a range's index → the counter of its turns, the step
        self._loops(kernel)
        self._components(kernel)

    def group(self, variable: int) -> int | None:
        """The group of a counter, None of any other variable."""
        return self.find(variable) if variable in self.parent else None

    def find(self, v: int) -> int:
        """The group of a counter."""
        while self.parent[v] != v:
            v = self.parent[v]
        return v

    def unite(self, a: int, b: int) -> None:
        """Makes two counters be of one group."""
        a, b = self.find(a), self.find(b)
        if a != b:
            self.parent[max(a, b)] = min(a, b)
            self.united = True

    def _loops(self, kernel: Kernel) -> None:
        by_stop: dict[Expr, int] = {}
        by_range: dict[tuple[Expr, Expr], int] = {}
        by_index: dict[tuple[Expr, Expr, int], int] = {}
        by_start: dict[tuple[Expr | None, Expr], tuple[int, int]] = {}
        by_form: dict[Recurrence, int] = {}
        starts: dict[int, Expr] = {}
        for node in kernel.nodes:
            if isinstance(node, Assign):
                starts.update(zip(node.targets, node.values, strict=True))
            if not isinstance(node, Loop) or node.once:
                continue
            if node.range is not None and node.range.start.op != "const":
                turn, self.start_of[node.label] = self.fresh, self.fresh + 1
                self.fresh += 2
                self.parent[turn] = turn
                ends = self._alike(node.range.start), self._alike(node.range.stop)
                self.unite(turn, by_range.setdefault(ends, turn))
                index = node.range.index
                self._named(index, by_index.setdefault((*ends, node.range.step), index))
                self.moved_by[node.range.index] = turn, node.range.step
            elif node.range is not None:
                turn = node.range.index
                self.parent.setdefault(turn, turn)
                other = by_stop.setdefault(self._alike(node.range.stop), turn)
                if node.range.stop.op != "const":
                    self.unite(turn, other)
            else:
                turn = self.fresh
                self.fresh += 1
                self.parent[turn] = turn
            self.turn_of[node.label] = turn
            self._find_inductive(node, turn, starts, by_start)
            for recurrent in self.recurrent.get(node.label, ()):
                self.unite(turn, by_form.setdefault(recurrent.form, turn))
                for v in recurrent.of:
                    if (node.label, v) not in self.begun:
                        self.begun[node.label, v] = self.fresh
                        self.fresh += 1

        for first, *others in loops_of_answers(kernel):
            for other in others:
                self.unite(self.turn_of[first], self.turn_of[other])

    def _alike(self, expr: Expr) -> Expr:
        """The same expression of all variables that their loops compute alike."""
        names = self._names
        return substitute(expr, lambda e: names.get(e.value) if e.op == "var" else None, {}) if names else expr

    def _named(self, variable: int, first: int) -> None:
        """first: the first one that is computed alike."""
        if variable != first:
            self._names[variable] = var(first)

    def _find_inductive(
        self, loop: Loop, turn: int, starts: dict[int, Expr], known: dict[tuple[Expr | None, Expr], tuple[int, int]]
    ) -> None:
        """Variables that a loop advances by the same unknown amount every turn: ``tile += grid_dim.x``.

        They are the start plus turns times the step, so that roles that do the same have the same value.
        """
        for variable, value in once_a_turn(loop).items():
            if value.op != "add":
                continue
            a, b = value.args
            step = b if is_var(a, variable) else a if is_var(b, variable) else None
            if step is None or step.op == "const" or any(e.op in ("var", "unknown", "tid") for e in leaves(step)):
                continue
            self.inductive[loop.label, variable] = self.fresh, step
            self.fresh += 1
            start = starts.get(variable)
            first = known.setdefault((None if start is None else self._alike(start), step), (turn, variable))
            self.unite(turn, first[0])
            self._named(variable, first[1])

    def _components(self, kernel: Kernel) -> None:
        """Variables that are assigned from one another plus a constant; counters if one of the constants is not 0."""
        edges: list[tuple[int, int, int]] = []
        for node in kernel.nodes:
            if isinstance(node, Assign):
                for target, value in zip(node.targets, node.values, strict=True):
                    by = moved(value)
                    if by is not None:
                        edges.append((target, *by))
        growing = {v for target, source, by in edges if by for v in (target, source)}
        changed = True
        while changed:
            changed = False
            for target, source, _ in edges:
                if (target in growing or source in growing) and not {target, source} <= growing:
                    growing |= {target, source}
                    changed = True
        for v in growing:
            self.parent.setdefault(v, v)
        for target, source, _ in edges:
            if target in growing:
                self.unite(target, source)
