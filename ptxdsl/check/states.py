"""A state of the whole kernel in a proof: where each agent is, what the barriers have, and who knows what.

*Knowledge* is what happens-before is here. Everything that matters later (the last access of an agent to some bytes,
the last completion of a barrier's phase, …) is an event with a bit; an agent or a barrier *knows* an event if it
happened before, in every schedule. An agent's knowledge goes into the barrier at which it arrives, and that of the
completed phase to those who waited for it. When an event happens anew nobody else knows it any more. So knowledge is
finite, whatever has happened, and two states with the same knowledge go on alike.

``proxied`` is the part of the knowledge that went through a proxy fence: what the async proxy sees of the threads' own
accesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptxdsl.check.counters import Counters
from ptxdsl.check.facts import Bounds, Facts, Key, moving_groups
from ptxdsl.check.values import INFINITE, Atom, Sum, Symbols, total
from ptxdsl.hints import Any
from ptxdsl.record import dataclass
from ptxdsl.source import Span


class _Left:
    """The counter of a loop that was left."""

    def __repr__(self) -> str:
        return "left"


LEFT = _Left()
Lives = tuple[tuple[Span, int], ...]  # where a barrier was initialised, and for how many arrivals
NOT_BEGUN = None


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """A barrier's state; made by ``phase``, equal ones are one object.

    expected: arrivals a phase, 0: not initialised. parity: of the current phase. arrived: agents that have arrived in
    this phase, as bits. announced: whether bytes were counted in this phase. begun: whether a phase is complete.
    unclear: whether an arrival may have fallen into another phase.
    """

    expected: int
    pending: int
    bytes: Any
    parity: int
    arrived: int
    announced: bool
    begun: bool
    unclear: bool


_phases: dict[tuple[Any, ...], Phase] = {}
_MOST_PHASES = 100_000  # of a process that proves many kernels


def phase(
    expected: int,
    pending: int,
    bytes: Any = 0,
    parity: int = 0,
    arrived: int = 0,
    announced: bool = False,
    begun: bool = False,
    unclear: bool = False,
) -> Phase:
    key = expected, pending, bytes, parity, arrived, announced, begun, unclear
    found = _phases.get(key)
    if found is None:
        if len(_phases) >= _MOST_PHASES:
            _phases.clear()
        found = _phases[key] = Phase(*key)
    return found


UNINITIALISED = phase(0, 0)


class State:
    """places: each agent's step. environments: their variables. facts: what is decided.

    known, proxied: by holder (agents, then what barriers hold). live: events that have happened. phases: of mbarriers.
    meetings: of named, CTA and cluster barriers. groups: of each agent, asynchronous work that it has not waited for,
    by mechanism: the open group, then the committed ones. fresh: of each agent, its own events since its threads last
    met; met: those of them that the lanes of each warp have met after. path: decisions taken, the latest first.
    fenced: of each agent, what it knows by ``tcgen05.fence`` of tensor memory. tensor: allocations, by array and CTA.
    times: how often each event has happened, where somebody wants to know. lives: of barriers that are initialised
    more than once, where that was, the last one last. fill: of the way to the state (``unwritten.Fill``).
    """

    __slots__ = (
        "environments", "facts", "fenced", "fill", "fresh", "groups", "known", "live", "lives", "meetings", "met",
        "path", "phases", "places", "proxied", "tensor", "times", "waited",
    )  # fmt: skip

    def __init__(self) -> None:
        self.places: list[int] = []
        self.environments: list[list[Any]] = []
        self.facts = Facts({}, {})
        self.known: list[int] = []
        self.proxied: list[int] = []
        self.live = 0
        self.phases: list[Phase] = []
        self.meetings: dict[Any, Any] = {}
        self.groups: list[dict[str, tuple[int, ...]]] = []
        self.fresh: list[int] = []
        self.met: list[int] = []
        self.waited: list[dict[int, Any]] = []
        self.path: Any = None
        self.fenced: list[int] = []
        self.tensor: dict[tuple[int, int], int] = {}
        self.times: dict[int, int] | None = None
        self.lives: dict[int, Lives] = {}
        self.fill: Any = None

    def copy(self) -> State:
        new = State.__new__(State)
        new.places = self.places[:]
        new.environments = [env[:] for env in self.environments]
        new.facts = self.facts.copy()
        new.known = self.known[:]
        new.proxied = self.proxied[:]
        new.live = self.live
        new.phases = self.phases[:]
        new.meetings = dict(self.meetings)
        new.groups = [dict(g) for g in self.groups]
        new.fresh = self.fresh[:]
        new.met = self.met[:]
        new.waited = [dict(w) for w in self.waited]
        new.path = self.path
        new.fenced = self.fenced[:]
        new.tensor = dict(self.tensor)
        new.times = None if self.times is None else dict(self.times)
        new.lives = dict(self.lives)
        new.fill = self.fill.copy()
        return new

    def count(self, bit: int) -> None:
        if self.times is not None:
            self.times[bit] = self.times.get(bit, 0) + 1

    def forget(self, bits: int) -> None:
        """Events that happen anew, or are over, are known to nobody."""
        keep = ~bits
        self.known = [k & keep for k in self.known]
        self.proxied = [k & keep for k in self.proxied]
        if self.tensor:
            self.fenced = [k & keep for k in self.fenced]


class Normal:
    """Finds the normal form of states: counters of a group moved back together by a multiple of the period."""

    def __init__(
        self,
        counters: Counters,
        symbols: Symbols,
        variables: Sequence[Sequence[int]],
        loops: Sequence[Iterable[tuple[int, int, int]]],
    ) -> None:
        """variables: those that each agent's program looks at. loops: its outermost ones: group, counter, ordinal."""
        self.counters = counters
        self.outermost: dict[tuple[int, int], list[tuple[int, int]]] = {}  # by group and ordinal: agents' counters
        for agent, own_loops in enumerate(loops):
            for outer, counter, ordinal in own_loops:
                self.outermost.setdefault((outer, ordinal), []).append((agent, counter))
        self.symbols = symbols
        self._shifted: dict[tuple[Any, Any], Any] = {}
        self.plain: list[tuple[int, int]] = []
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
                    self.plain.append((agent, v))

    def key(self, state: State) -> tuple[Any, ...]:
        self._prune(state)
        shifts = self._shifts(state)
        environments: list[Any] = []
        all_of = state.environments
        for agent, v in self.plain:
            value: Any = all_of[agent][v]
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
            tuple([k & state.live for k in state.known]),
            tuple(state.proxied),
            state.live,
            tuple(state.phases),
            tuple(state.meetings.items()) if state.meetings else (),
            tuple([tuple(g.items()) for g in state.groups if g]),
            tuple(state.fresh),
            tuple(state.met),
            (tuple(state.fenced), *state.tensor.items()) if state.tensor else (),
            frozenset(facts.absolute.items()) if facts.absolute else (),
            frozenset(self._facts(facts.moving, shifts)) if facts.moving else (),
        )

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
        period, threshold = self.counters.period, self.counters.threshold
        return {
            g: (value - threshold) // period * period
            for g, value in least.items()
            if value > threshold and g not in self.counters.irregular
        }

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
        """Drops facts that no agent can come to any more."""
        moving = state.facts.moving
        if not moving:
            return
        stale = [key for key, bounds in moving.items() if self._is_stale(state, key, bounds)]
        for key in stale:
            del moving[key]
        for key, bounds in moving.items():
            if len(bounds.rates) == 1 and not key[1]:
                moving[key] = self._loosened(state, bounds)

    def _loosened(self, state: State, bounds: Bounds) -> Bounds:
        """Bounds that all counters have left far behind say no more than that."""
        ((group, turns, growth),) = bounds.rates
        if growth <= 0:
            return bounds
        least = self._least(state, group)
        if least is None:
            return bounds
        behind = least // turns * growth - growth * (self.counters.threshold + 1)
        high = max(bounds.high, behind)
        low = bounds.low if bounds.low >= behind else -INFINITE
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
            return self._beyond(state, group, value)
        groups = {g for g, _, _ in bounds.rates}
        for atom, _ in terms:
            if atom.moving:
                for index in _indices(atom):
                    at, rates = index.name
                    if any(self._beyond(state, group, at * turns // growth) for group, turns, growth in rates):
                        return True
                groups |= moving_groups(atom)
        return bool(groups) and all(self._left(state, g, ordinal) for g in groups)

    def _left(self, state: State, group: int, ordinal: int) -> bool:
        """Whether all agents have left their outermost loop of a group, the one of that number."""
        loops = self.outermost.get((group, ordinal))
        if loops is None:
            return self._beyond(state, group, 1 << 60)
        return all(state.environments[agent][counter] is LEFT for agent, counter in loops)

    def _beyond(self, state: State, group: int, value: int) -> bool:
        """Whether all agents have passed a turn of their loops of a group, or have none."""
        for agent, v, rates in self.counting:
            if len(rates) == 1 and rates[0] == (group, 1, 1):
                at = state.environments[agent][v]
                if at is NOT_BEGUN or (type(at) is int and at <= value):
                    return False
        return True


def _indices(atom: Atom) -> list[Atom]:
    if atom.op == "index":
        return [atom]
    found = []
    for arg in atom.args:
        for inner, _ in arg.terms if isinstance(arg, Sum) else ():
            if inner.moving:
                found += _indices(inner)
    return found
