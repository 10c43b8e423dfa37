"""When two states are the same for all that comes after them: the keys by which states are recognised.

Counters of a group count by their differences, variables that are assigned before they are looked at do not count, and
facts that no role comes to any more are dropped. So are, in a coarse search, those that all have come to: asked again,
the question is decided again, which allows more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.check.counters import Counters
from ptxdsl.check.facts import ANY, Bounds, Key, moving_groups
from ptxdsl.check.liveness import live_variables, places_before
from ptxdsl.check.program import Choose, Head, Step
from ptxdsl.check.states import LEFT, State
from ptxdsl.check.values import INFINITE, Atom, Sum, Symbols, total
from ptxdsl.hints import Any

NOT_BEGUN = None
# Turns by which some may be ahead of others that have not begun the same loop.
FARTHEST_AHEAD = 64


class TooFarAhead(Exception):
    """Some go on turning while others have not begun."""


class Normal:
    """Finds the normal form of states: counters of a group moved back together by a multiple of the period."""

    def __init__(
        self,
        counters: Counters,
        symbols: Symbols,
        variables: Sequence[Sequence[int]],
        steps: Sequence[Sequence[Step]],
        loops: Sequence[Iterable[tuple[int, int, int]]],
    ) -> None:
        """variables: those that each agent's program looks at. steps: the programs. loops: its outermost ones: group,
        counter, ordinal."""
        self.counters = counters
        self.outermost: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by group and ordinal: agents' counters
        for agent, own_loops in enumerate(loops):
            for outer, counter, ordinal in own_loops:
                self.outermost.setdefault((outer, ordinal), []).append((agent, counter))
        self.symbols = symbols
        self.steps = steps
        self.nests = [
            (agent, nest) for agent, own in enumerate(steps) for nest in {step.nesting for step in own if step.nesting}
        ]
        heads = {(agent, step.nesting) for agent, own in enumerate(steps) for step in own if isinstance(step, Head)}
        # Loops that are ranges for all agents, by group and ordinal.
        self.ranges = {(nest[-1][0], nest[-1][2]) for _, nest in heads}
        self.ranges -= {(nest[-1][0], nest[-1][2]) for agent, nest in self.nests if (agent, nest) not in heads}
        self._analysed: list[list[int] | None] = [None] * len(steps)
        self._live: list[dict[int, list[int]]] = [{} for _ in steps]
        self._ahead: dict[tuple[int, int], set[int]] = {}  # by agent and counter: places from which its loop is ahead
        self._first: dict[tuple[int, int], int] = {}  # by agent and counter: where its loop decides something first
        self._shifted: dict[tuple[Any, Any], Any] = {}
        self.moved: set[int] = set()  # groups of which counters were moved back in some state
        self.plain: list[list[int]] = [[] for _ in variables]
        self.counting: list[tuple[int, int, tuple[tuple[int, int, int], ...]]] = []
        for agent, own in enumerate(variables):
            for v in own:
                group = counters.group(v)
                rates = counters.derived.get(v, {})
                if group is not None:
                    self.counting.append((agent, v, ((group, 1, 1),)))
                elif rates and -1 not in rates:
                    self.counting.append((agent, v, tuple((g, turns, growth) for g, (turns, growth) in rates.items())))
                else:
                    self.plain[agent].append(v)

    def key(self, state: State) -> tuple[Any, ...]:
        """All that what comes after a state hangs on."""
        fill = state.fill
        return self.place(state), frozenset(state.facts.absolute.items()), known(state), fill.place(), fill.known()

    def place(self, state: State) -> tuple[Any, ...]:
        """The part of it that is not about who knows what, nor about values of the launch (``merging.py``)."""
        self._prune(state)
        shifts = self._shifts(state)
        environments: list[Any] = []
        all_of = state.environments
        for agent, place in enumerate(state.places):
            own = all_of[agent]
            for v in self._live_at(agent, place):
                value: Any = own[v]
                environments.append(value if type(value) is int or value is None else self.shifted(value, shifts))
        for agent, v, rates in self.counting:
            value = all_of[agent][v]
            if type(value) is int:
                for group, turns, growth in rates:
                    value -= shifts.get(group, 0) // turns * growth
            elif value is not None:
                value = self.shifted(value, shifts)
            environments.append(value)
        facts = state.facts
        return (
            tuple(state.places),
            tuple(environments),
            tuple(state.phases),
            tuple(state.meetings.items()) if state.meetings else (),
            tuple([tuple(g.items()) if g else () for g in state.groups]),
            frozenset(_of_turns(state, shifts)) if state.answers else (),
            frozenset(state.held.items()) if state.held else (),
            tuple(state.tensor.items()) if state.tensor else (),
            frozenset(self._facts(facts.moving, shifts)) if facts.moving else (),
        )

    def _live_at(self, agent: int, place: int) -> list[int]:
        """The variables without growth that matter to an agent at a place."""
        if place < 0:
            return []
        found = self._live[agent].get(place)
        if found is None:
            live = self._analysed[agent]
            if live is None:
                live = self._analysed[agent] = live_variables(self.steps[agent])
            found = self._live[agent][place] = [v for v in self.plain[agent] if live[place] >> v & 1]
        return found

    def _shifts(self, state: State) -> dict[int, int]:
        least: dict[int, int] = {}

        def see(group: int, value: int) -> None:
            least[group] = min(least.get(group, value), value)

        for agent, v, rates in self.counting:
            if len(rates) == 1 and rates[0][1:] == (1, 1):
                value = state.environments[agent][v]
                if type(value) is int:
                    see(rates[0][0], value)
        for (terms, around, _), bounds in state.facts.moving.items():
            for group, value, _ in around:
                see(group, value)
            for group, turns, growth in bounds.rates:
                for bound in (bounds.low, bounds.high):
                    if abs(bound) < 1 << 61:
                        see(group, abs(bound * turns // growth))
            for atom, _ in terms:
                if atom.moving:
                    for index in _indices(atom):
                        for group, _, growth in index.name[1]:
                            see(group, abs(index.name[0] // growth))
        counters, period = self.counters, self.counters.period
        found = {
            g: (value - past) // period * period
            for g, value in least.items()
            if value > (past := counters.past(g)) and g not in counters.irregular
        }
        for key, bounds in state.facts.moving.items() if found else ():
            groups = _groups(key, bounds)
            if not groups.isdisjoint(found) and self._awaited(state, key, groups):
                for g in groups & found.keys():
                    if found.pop(g) > FARTHEST_AHEAD:
                        raise TooFarAhead
        self.moved.update([group for group, by in found.items() if by])
        return found

    def _awaited(self, state: State, key: Key, groups: set[int]) -> bool:
        """Whether an agent may still begin loops that a fact is about: it will count from their start."""
        _, around, ordinal = key
        for agent, nest in self.nests:
            *outside, (group, counter, number) = nest
            if group not in groups or number != ordinal or len(outside) != len(around):
                continue
            env = state.environments[agent]
            for (g, variable, n), (other, value, m) in zip(outside, around, strict=True):
                if g != other or n != m:
                    break
                at = env[variable]
                if at is NOT_BEGUN or (type(at) is int and at < value):
                    return True
                if at is LEFT or at > value:
                    break
            else:
                at = env[counter]
                if self._to_begin(state, agent, counter) or (at is LEFT and around):
                    return True
        return False

    def _facts(self, moving: dict[Key, Bounds], shifts: dict[int, int]) -> Iterable[Any]:
        for (terms, around, ordinal), bounds in moving.items():
            by = sum(shifts.get(g, 0) // turns * growth for g, turns, growth in bounds.rates)
            low = bounds.low - by if bounds.low > -(1 << 61) else None
            high = bounds.high - by if bounds.high < 1 << 61 else None
            parts = tuple((self._atom(atom, shifts), c) for atom, c in terms)
            outside = tuple((g, value - shifts.get(g, 0), n) for g, value, n in around)
            yield tuple((a.number, c) for a, c in parts), outside, ordinal, low, high, bounds.rates

    def shifted(self, value: Any, shifts: dict[int, int]) -> Any:
        if not isinstance(value, Sum) or not value.moving or not shifts:
            return value
        key = value, tuple(shifts.items())
        found = self._shifted.get(key)
        if found is None:
            found = self._shifted[key] = self._moved(value, shifts)
        return found

    def _moved(self, value: Sum, shifts: dict[int, int]) -> Any:
        terms: dict[Atom, int] = {}
        for atom, coefficient in value.terms:
            new = self._atom(atom, shifts)
            terms[new] = terms.get(new, 0) + coefficient
        return total(value.constant, terms)

    def _atom(self, atom: Atom, shifts: dict[int, int]) -> Atom:
        if not atom.moving:
            return atom
        if atom.op == "index":
            value, rates = atom.name
            for group, turns, growth in rates:
                value -= shifts.get(group, 0) // turns * growth
            return self.symbols.atom("index", (value, rates))
        args = tuple(self.shifted(a, shifts) for a in atom.args)
        return self.symbols.atom(atom.op, atom.name, args, atom.low, atom.high)

    def _prune(self, state: State) -> None:
        """Drops facts that no agent can come to any more; a coarse search also drops what all have decided."""
        moving = state.facts.moving
        for key, bounds in list(moving.items()):
            if self._is_stale(state, key, bounds):
                del moving[key]
            elif len(bounds.rates) == 1:
                begun = self.counters.coarse and self._all_begun(state, key, bounds)
                if begun or not key[1]:
                    moving[key] = looser = self._loosened(state, bounds, begun)
                    if begun and (looser.low, looser.high) == (ANY.low, ANY.high):
                        del moving[key]

    def _all_begun(self, state: State, key: Key, bounds: Bounds) -> bool:
        """Whether a fact is about the end of a range, and all have begun that who will be in it."""
        ((group, _, _),) = bounds.rates
        return (group, key[2]) in self.ranges and not self._awaited(state, key, _groups(key, bounds))

    def _loosened(self, state: State, bounds: Bounds, begun: bool) -> Bounds:
        """Bounds that all counters have left far behind say no more than that. begun: nor does what heads of a range
        have asked that all have begun, as they ask for more."""
        ((group, turns, growth),) = bounds.rates
        if growth <= 0:
            return bounds
        least = self._least(state, group)
        if least is None:
            return bounds
        at = least // turns * growth
        behind = at - growth * (self.counters.past(group) + 1)
        high = max(bounds.high, behind)
        low = bounds.low if bounds.low >= (at + 1 if begun else behind) else -INFINITE
        return bounds if (low, high) == (bounds.low, bounds.high) else Bounds(low, high, bounds.rates)

    def _least(self, state: State, group: int) -> int | None:
        """How far the last of the agents is in its loops of a group; None where that is not seen."""
        found: int | None = None
        for agent, v, rates in self.counting:
            if rates[0][0] == group and len(rates) == 1 and rates[0][1:] == (1, 1):
                at = state.environments[agent][v]
                if type(at) is int:
                    found = at if found is None else min(found, at)
                elif at is not LEFT:
                    return None
        return found

    def _is_stale(self, state: State, key: Key, bounds: Bounds) -> bool:
        terms, around, ordinal = key
        if around:
            group, value, _ = around[0]
            return self._beyond(state, group, value) or (len(around) > 1 and self._passed(state, around, ordinal))
        coarse = self.counters.coarse
        for atom, _ in terms:
            if atom.moving:
                for index in _indices(atom):
                    at, rates = index.name
                    if any(self._beyond(state, g, at * turns // growth, decided=coarse) for g, turns, growth in rates):
                        return True
        groups = _groups(key, bounds)
        return bool(groups) and all(self._left(state, g, ordinal) for g in groups)

    def _passed(self, state: State, around: tuple[tuple[int, int, int], ...], ordinal: int) -> bool:
        """Whether all agents have passed a turn of loops in one another."""
        for agent, nest in self.nests:
            *outside, (_, _, number) = nest
            if number != ordinal or [(g, n) for g, _, n in outside] != [(g, n) for g, _, n in around]:
                continue
            env = state.environments[agent]
            for (_, variable, _), (_, value, _) in zip(outside, around, strict=True):
                at = env[variable]
                if at is LEFT and variable == outside[0][1]:
                    break
                if type(at) is not int or at < value:  # one that was left may be one of the turn before
                    return False
                if at > value:
                    break
            else:
                return False
        return True

    def _left(self, state: State, group: int, ordinal: int) -> bool:
        """Whether all agents have left their outermost loop of a group, the one of that number."""
        loops = self.outermost.get((group, ordinal))
        if loops is None:
            return self._beyond(state, group, 1 << 60)
        return all(state.environments[agent][counter] is LEFT for agent, counter in loops)

    def _beyond(self, state: State, group: int, value: int, *, decided: bool = False) -> bool:
        """Whether all agents have passed a turn of their loops of a group, or have none. decided: or are in that turn
        and have decided what comes first there."""
        for agent, v, rates in self.counting:
            if len(rates) == 1 and rates[0] == (group, 1, 1):
                at = state.environments[agent][v]
                if self._to_begin(state, agent, v):
                    return False
                if type(at) is not int or at > value:
                    continue
                if at < value or not (decided and self._has_decided(state, agent, v)):
                    return False
        return True

    def _has_decided(self, state: State, agent: int, counter: int) -> bool:
        """Whether an agent is in a turn of its loop, beyond the first place where something is decided there."""
        first = self._first.get((agent, counter))
        if first is None:
            steps = [step for step in self.steps[agent] if step.nesting and step.nesting[-1][1] == counter]
            decisions = [step.number for step in steps if isinstance(step, (Choose, Head))]
            first = self._first[agent, counter] = decisions[0] if decisions else len(self.steps[agent])
        return state.places[agent] > first

    def _to_begin(self, state: State, agent: int, counter: int) -> bool:
        """Whether an agent has not begun a loop and may come to it."""
        if state.environments[agent][counter] is not NOT_BEGUN:
            return False
        ahead = self._ahead.get((agent, counter))
        if ahead is None:
            ahead = self._ahead[agent, counter] = places_before(self.steps[agent], counter)
        return state.places[agent] in ahead


def _of_turns(state: State, shifts: dict[int, int]) -> Iterable[Any]:
    for at, asked in state.answers.items():
        yield at, asked and asked[1] - shifts.get(asked[0], 0)


def known(state: State) -> tuple[Any, ...]:
    live = state.live
    return (
        tuple([k & live for k in state.known]),
        tuple(state.proxied),
        live,
        tuple(state.fresh),
        tuple(state.met),
        tuple(state.fenced) if state.tensor else (),
    )


def _groups(key: Key, bounds: Bounds) -> set[int]:
    """The groups of the counters that a fact is about."""
    groups = {g for g, _, _ in bounds.rates}
    for atom, _ in key[0]:
        if atom.moving:
            groups |= moving_groups(atom)
    return groups


def _indices(atom: Atom) -> list[Atom]:
    if atom.op == "index":
        return [atom]
    found = []
    for arg in atom.args:
        for inner, _ in arg.terms if isinstance(arg, Sum) else ():
            if inner.moving:
                found += _indices(inner)
    return found
