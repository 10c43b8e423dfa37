"""The variables by which an agent goes round rings: numbers of stages, and parities that change where these begin anew.

They are recognised by how they are assigned: ``i = 0 if i + 1 == S else i + 1``, ``p = p ^ (i + 1 == S)``,
``p = p ^ 1`` and copies of such. Whether a program really treats all stages alike is not found here (``symmetry.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ptxdsl.check.program import Assignment, Step
from ptxdsl.protocol.expressions import CONVERSIONS, Expr
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class RingVariables:
    """stages: of each number of a stage, and 2 of each parity. partner: of a parity that changes with a stage's number,
    the variable that has it. constants: other variables that have one value only, with it. kin: of each variable of a
    ring one that stands for it and its copies."""

    stages: Mapping[int, int]
    partner: Mapping[int, int]
    constants: Mapping[int, int]
    kin: Mapping[int, int]

    def turned(self, values: Mapping[int, int], by: int) -> dict[int, int]:
        """Values of variables of one ring when it is turned back by some stages."""
        new = {}
        for v, value in values.items():
            other = self.partner.get(v)
            if other is not None:
                new[v] = value ^ ((values[other] - by) // self.stages[other] & 1)
            else:
                new[v] = (value - by) % self.stages[v]
        return new

    def order(self, variables: Iterable[int]) -> int:
        """After how many stages a ring with these variables is where it was."""
        return max((self.stages[self.partner[v]] * 2 if v in self.partner else self.stages[v]) for v in variables)


def ring_variables(steps: Iterable[Step]) -> RingVariables:
    """What an agent's assignments say; variables that are assigned in any other way are no ring's."""
    assignments = [step for step in steps if isinstance(step, Assignment)]
    parent: dict[int, int] = {}

    def find(v: int) -> int:
        parent.setdefault(v, v)
        while parent[v] != v:
            v = parent[v]
        return v

    stages: dict[int, set[int]] = {}
    constants: dict[int, set[int]] = {}
    wrong: set[int] = set()
    pairs: dict[int, int] = {}
    copies: list[list[tuple[int, int]]] = []
    for step in assignments:
        same: list[tuple[int, int]] = []
        for target, value in zip(step.targets, step.values, strict=True):
            find(target)
            if value.op == "const":
                constants.setdefault(target, set()).add(value.value)
                continue
            source, count, changes = _source(value)
            if source is None:
                wrong.add(target)
                continue
            parent[find(target)] = find(source)
            same.append((target, source))
            if count:
                stages.setdefault(target, set()).add(count)
            for change in changes:
                if change is None:
                    stages.setdefault(target, set()).add(2)
                elif pairs.setdefault(source, change) != change:
                    wrong.add(source)
        copies.append(same)
    for variable in {v for step in steps if not isinstance(step, Assignment) for v in step.assigns}:
        wrong.add(variable)
    _pair(pairs, copies)
    by_kin: dict[int, list[int]] = {}
    for v in parent:
        by_kin.setdefault(find(v), []).append(v)
    found: dict[int, int] = {}
    partner: dict[int, int] = {}
    fixed: dict[int, int] = {}
    for kin in by_kin.values():
        if not wrong.isdisjoint(kin):
            continue
        counts = set[int]().union(*(stages.get(v, ()) for v in kin))
        paired = [v for v in kin if v in pairs]
        if paired and not counts and len(paired) == len(kin):
            found.update((v, 2) for v in kin)
            partner.update((v, pairs[v]) for v in kin)
        elif len(counts) == 1 and not paired:
            found.update(dict.fromkeys(kin, counts.pop()))
        elif not counts and not paired:
            values = set[int]().union(*(constants.get(v, ()) for v in kin))
            if len(values) == 1:
                fixed.update(dict.fromkeys(kin, values.pop()))
    if any(other not in found or other in partner for other in partner.values()):
        return RingVariables({}, {}, fixed, {})
    return RingVariables(found, partner, fixed, {v: find(v) for v in found})


def _pair(pairs: dict[int, int], copies: list[list[tuple[int, int]]]) -> None:
    """Parities that are copied together with the number of a stage belong to it."""
    changed = True
    while changed:
        changed = False
        for same in copies:
            for target, source in same:
                if source in pairs and target not in pairs:
                    others = [t for t, s in same if s == pairs[source]]
                elif target in pairs and source not in pairs:
                    others = [s for t, s in same if t == pairs[target]]
                    target = source
                else:
                    continue
                if len(others) >= 1:
                    pairs[target] = others[0]
                    changed = True


def _source(value: Expr) -> tuple[int | None, int, list[int | None]]:
    """The variable that a value is made of, the stages of a ring that it steps in, and with what parities change."""
    changes: list[int | None] = []
    while True:
        value = _plain(value)
        if value.op == "xor" and value.args[1].op == "const" and value.args[1].value == 1:
            changes.append(None)
            value = value.args[0]
            continue
        if value.op != "xor":
            break
        whether = _plain(value.args[1])
        if whether.op != "eq" or whether.args[0].op != "add":
            return None, 0, []
        number, _, _ = _source(whether.args[0].args[0])
        if number is None:
            return None, 0, []
        changes.append(number)
        value = value.args[0]
    if changes:
        return (value.value if value.op == "var" else None), 0, changes
    stages = set(_stages(value))
    while value.op == "select":
        value = _plain(value.args[2])
        if value.op != "add":
            return None, 0, []
        value = _plain(value.args[0])
    if value.op != "var" or len(stages) > 1:
        return None, 0, []
    return value.value, stages.pop() if stages else 0, []


def _stages(value: Expr) -> Iterator[int]:
    """The numbers at which ``select(next == S, 0, next)`` begins anew."""
    while value.op == "select":
        whether, first, following = value.args
        whether = _plain(whether)
        if whether.op != "eq" or whether.args[1].op != "const" or first.op != "const" or first.value:
            yield 0
            yield -1
            return
        yield whether.args[1].value
        value = _plain(_plain(following).args[0]) if _plain(following).args else following


def _plain(value: Expr) -> Expr:
    while value.op in CONVERSIONS:
        value = value.args[0]
    return value
