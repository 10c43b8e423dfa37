"""Exploration: all interleavings of a small launch, up to equivalence, and what each of them comes to.

Runs that differ only in the order of turns that commute come to the same end; one of each class is enough. The search
is dynamic partial-order reduction with sleep sets (Flanagan, Godefroid 2005; Godefroid 1996) over the simulator's
turns: every run tells which of its turns could have come the other way round (``orders``), and each such reversal is
tried, from the start. A wait is a turn that comes when it can; so a kernel whose turns are all ordered by its own
barriers takes one run, whatever its trip count, and the number of runs grows with the races that there are.

What is found is exact for the launch, the arguments and the simulator's turns: a race inside of a turn, between two
plain accesses, is the trace check's to find. Limits on runs, turns and time may end the search early; the result says
so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import numpy.typing as npt

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.simulated import Kernel, LaunchShape, simulation
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.explore.footprints import Footprints
from ptxdsl.explore.orders import Clock, Event, Orders, happened
from ptxdsl.explore.steps import Part, commute
from ptxdsl.record import dataclass, field
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.schedule import Recording, Schedule

if TYPE_CHECKING:
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.machine.cta import AgentEntity
    from ptxdsl.sim.machine.schedule import Picker

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Bounds:
    """Where a search ends. turns: of one run."""

    runs: int = 2000
    turns: int = 5000
    seconds: float = 30.0


@dataclass(frozen=True)
class Outcome:
    """What some interleavings come to. status: the report's; diagnostics: its reason. results: the bytes that the
    arguments' arrays hold at the end of a finished run, as a number: 0 for those of the first finished run, 1 for the
    next that differ. schedule: of one such run, for a replay (``ptxdsl run --schedule FILE``). times: runs seen."""

    status: str
    diagnostics: tuple[Diagnostic, ...]
    results: int | None
    schedule: Recording
    times: int


@dataclass(frozen=True)
class Exploration:
    """outcomes: each kind once, in the order in which they were found. complete: whether all interleavings have been
    covered; else ``why`` tells what has not."""

    outcomes: tuple[Outcome, ...]
    runs: int
    complete: bool
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all runs seen finish with the same results."""
        return len(self.outcomes) == 1 and self.outcomes[0].status == "finished"

    def as_json(self) -> dict[str, Any]:
        """The stable form (``--json``)."""
        kept = [{"status": o.status, "results": o.results, "runs": o.times} for o in self.outcomes]
        return {"complete": self.complete, "why": self.why, "runs": self.runs, "outcomes": kept}

    def text(self) -> str:
        """A line for each outcome."""
        lines = []
        for outcome in self.outcomes:
            what = outcome.status
            if outcome.results is not None:
                what += f" with results {outcome.results}"
            elif outcome.diagnostics:
                what += f": {outcome.diagnostics[0].message}"
            lines.append(f"{what} ({outcome.times} of {self.runs} runs)")
        seen = "all interleavings seen" if self.complete else f"not all interleavings seen: {self.why}"
        return "\n".join([*lines, seen])


def explore(
    kernel: Kernel | Compiled,
    arguments: Sequence[Any],
    *,
    arch: str = "sm_90a",
    bounds: Bounds | None = None,
    **shape: Unpack[LaunchShape],
) -> Exploration:
    """All interleavings of a small launch. The parameters are those of ``check_trace``; arrays are left as they were.

    Raises what a simulation of the launch raises."""
    bounds = bounds or Bounds()
    launch = simulation(kernel, arguments, arch, **shape)
    limits = Limits(turns=bounds.turns)

    def run(schedule: Schedule, watch: Footprints) -> Report:
        return launch(schedule=schedule, limits=limits, record=True, watch=watch)

    return explore_runs(run, list(arrays_of(arguments)), bounds)


def arrays_of(arguments: Sequence[Any]) -> list[Array]:
    """The arrays among arguments, those of structs and tensor maps too."""
    found: list[Array] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            found.append(argument)
        elif isinstance(argument, tuple | list):
            found += arrays_of(argument)
        elif isinstance(argument, Mapping):
            found += arrays_of(list(argument.values()))
        elif isinstance(getattr(argument, "array", None), np.ndarray):
            found.append(argument.array)
    return found


def explore_runs(
    run: Callable[[Schedule, Footprints], Report], arrays: Sequence[Array], bounds: Bounds | None = None
) -> Exploration:
    """The same for whatever runs a kernel under a schedule with a watch. arrays: what it changes; they are put back
    before each run and at the end."""
    return _Search(run, arrays, bounds or Bounds()).all()


class _Asleep(Exception):
    """All that can move has been tried here already."""


@dataclass(slots=True, eq=False)
class _Node:
    """A state on the way: those that can move there, who is taken, who has been (with the parts of that turn), whom to
    try yet, and who need not be tried (``sleep``)."""

    enabled: tuple[str, ...]
    taken: str
    sleep: dict[str, list[Part]]
    done: dict[str, list[Part]] = field(default_factory=dict)
    todo: set[str] = field(default_factory=set)


class _Steered(Schedule):
    """A schedule that a search decides."""

    def __init__(self, picker: _Picker) -> None:
        super().__init__()
        self.made = picker

    def picker(self) -> Picker:
        return self.made


class _Picker:
    """Takes the nodes of the search first, then goes on round robin."""

    def __init__(self, search: _Search) -> None:
        self._search = search
        self._entities: dict[str, Any] = {}

    def add(self, entity: Any) -> None:
        self._entities[entity.name] = entity

    def take(self) -> Any:
        return self._entities.pop(self._search.choose(tuple(self._entities)))

    def waiting(self) -> list[Any]:
        return list(self._entities.values())

    def __len__(self) -> int:
        return len(self._entities)


class _Watch(Footprints):
    def __init__(self, search: _Search) -> None:
        self._search = search

    def issued(self, entity: AgentEntity) -> None:
        super().issued(entity)
        self._search.issued(entity.name)


class _Search:
    def __init__(self, run: Callable[[Schedule, Footprints], Report], arrays: Sequence[Array], bounds: Bounds) -> None:
        self.run = run
        self.arrays = arrays
        self.bounds = bounds
        self.nodes: list[_Node] = []
        self.outcomes: dict[tuple[Any, ...], list[Any]] = {}
        self.results: dict[bytes, int] = {}
        self.runs = 0
        self.why = ""

    def all(self) -> Exploration:
        before = [array.copy() for array in self.arrays]
        start = monotonic()
        while True:
            self._once()
            for array, saved in zip(self.arrays, before, strict=True):
                array[...] = saved
            if not self._next():
                break
            if self.runs >= self.bounds.runs:
                self.why = self.why or f"the limit of {self.runs} runs"
                break
            if monotonic() - start > self.bounds.seconds:
                self.why = self.why or f"the limit of {self.bounds.seconds:g} seconds"
                break
        outcomes = tuple(Outcome(*kept) for kept in self.outcomes.values())
        return Exploration(outcomes, self.runs, not self.why, self.why)

    # One run

    def _once(self) -> None:
        self.depth = 0  # turns taken
        self.orders = Orders()
        self.numbers: dict[str, int] = {}  # of entities
        self.turns: list[str] = []
        self.births: list[str] = []
        self.watch = _Watch(self)
        picker = _Picker(self)
        try:
            report = self.run(_Steered(picker), self.watch)
        except _Asleep:
            return
        if report.status == "interrupted":
            raise KeyboardInterrupt
        faulty = self.watch.fault() if report.status == "fault" else []
        self._ended()
        self.runs += 1
        if faulty and self.nodes:
            # What others would have done is not known: each of them may go first.
            node = self.nodes[self.depth - 1]
            node.todo.update(node.enabled)
            node.done[node.taken] = faulty
        if report.status == "limit":
            self.why = f"a run did not end within {self.bounds.turns} turns"
        self._outcome(report)

    def _outcome(self, report: Report) -> None:
        results = None
        if report.status == "finished":
            digest = hashlib.sha256(b"".join(array.tobytes() for array in self.arrays)).digest()
            results = self.results.setdefault(digest, len(self.results))
        first = report.diagnostics[0] if report.diagnostics and report.status != "finished" else None
        key = (report.status, results, first.code if first else "", first.span if first else None)
        kept = self.outcomes.get(key)
        if kept is None:
            assert report.recording is not None
            self.outcomes[key] = [report.status, report.diagnostics, results, report.recording, 1]
        else:
            kept[4] += 1

    def choose(self, enabled: tuple[str, ...]) -> str:
        """Who is next."""
        self._ended()
        depth = self.depth
        if depth == len(self.nodes):
            self.nodes.append(self._new_node(enabled))
        node = self.nodes[depth]
        self.depth += 1
        self.turns.append(node.taken)
        return node.taken

    def _new_node(self, enabled: tuple[str, ...]) -> _Node:
        sleep: dict[str, list[Part]] = {}
        if self.nodes:
            last = self.nodes[-1]
            parts = last.done[last.taken]
            for name, theirs in (*last.sleep.items(), *last.done.items()):
                if name != last.taken and name in enabled and commute(theirs, parts):
                    sleep[name] = theirs
        awake = [name for name in enabled if name not in sleep]
        if not awake:
            raise _Asleep
        return _Node(enabled, awake[0], sleep)

    def issued(self, name: str) -> None:
        self.births.append(name)

    def _ended(self) -> None:
        """The turn that was taken last is over."""
        if not self.turns:
            return
        turn = self.depth - 1
        name = self.turns[-1]
        node = self.nodes[turn]
        if self.watch.ran_ahead:
            node.todo.update(node.enabled)
        parts = self.watch.take()
        births, self.births = self.births, []
        node.done[name] = parts
        entity = self._number(name)
        for part in parts or [Part()]:
            reversible, before = self.orders.add(entity, turn, part)
            for earlier in reversible:
                self._reverse(earlier, before, name)
        for born in births:
            self.orders.born(self._number(born))

    def _number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def _reverse(self, earlier: Event, before: Clock, name: str) -> None:
        """Has the search try an entity's part before an earlier event. before: what must come before the part."""
        node = self.nodes[earlier.turn]
        if name in node.enabled:
            node.todo.add(name)
            return
        # Those who must come first so that it can.
        names = list(self.numbers)
        first = {
            names[event.entity]
            for event in self.orders.events
            if event.turn > earlier.turn and happened(before, event) and names[event.entity] in node.enabled
        }
        if not first:
            node.todo.update(node.enabled)
        elif not (node.todo | node.done.keys()) & first:
            node.todo.add(min(first))

    def _next(self) -> bool:
        """Goes back to the last state at which somebody is to be tried yet."""
        while self.nodes:
            node = self.nodes[-1]
            left = [
                name for name in node.enabled if name in node.todo and name not in node.done and name not in node.sleep
            ]
            if left:
                node.taken = left[0]
                return True
            self.nodes.pop()
        return False
