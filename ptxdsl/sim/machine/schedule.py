"""Schedules: which of the warps and asynchronous agents that can move is next. An interleaving is a value.

``round-robin`` (who has waited longest), ``random:SEED``, ``slow:NAME`` (runs only when nothing else can), or a
recorded sequence of turns, replayed exactly. A turn is the code of one warp up to its next host instruction, or
``fuel`` turns of its loops, or one step of an agent. The same schedule gives the same result to the bit.

Names: ``cta0.warp3``, ``cta0.tma#2`` (the third copy that CTA 0's TMA unit was given).
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ptxdsl.diagnostics import CompileError, Diagnostic, counted
from ptxdsl.record import dataclass

DEFAULT_FUEL = 1024  # turns of loops a turn
_MOST_FUEL = (1 << 31) - 1  # ``layout.WARP`` has 31 bits for it
_MOST_PASSED_OVER = 1 << 11  # turns in a row without one for those that are slow
UNITS = ("tma", "cp.async", "st.async", "wgmma", "tcgen05")  # of agents
BAD_SCHEDULE = "E1103"
SCHEDULE_MISMATCH = "E1195"


class Entity(Protocol):
    """A warp or an agent. unit: ``warp``, or the agent's (``tma``, ``wgmma``, …)."""

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...


class Picker(Protocol):
    """Holds the entities that can move; ``take`` removes the next one (there is one), ``waiting`` lists them."""

    def add(self, entity: Any) -> None: ...
    def take(self) -> Any: ...
    def waiting(self) -> list[Any]: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Schedule:
    """kind: ``round-robin``, ``random``, ``slow`` or ``recorded``. fuel: of a turn.

    ``str`` gives the text that ``parse_schedule`` takes; of a recorded one, its JSON.
    """

    kind: str = "round-robin"
    seed: int = 0
    slow: str = ""
    recorded: Recording | None = None
    fuel: int = DEFAULT_FUEL

    def picker(self) -> Picker:
        if self.kind == "random":
            return _Random(self.seed)
        if self.kind == "slow":
            return _Slow(_matcher(self.slow))
        if self.recorded is not None:
            return _Replay(self.recorded)
        return RoundRobin()

    def check(self, ctas: int, warps: int) -> None:
        """Raises CompileError E1103 where a launch of so many CTAs, of so many warps each, has none that is slow."""
        cta, first = _least_named(self.slow)
        for named, there, what in (first, warps, " in a CTA"), (cta, ctas, ""):
            if named >= there:
                noun = "warp" if what else "CTA"
                raise _bad(str(self), f"this launch has {counted(there, noun)}{what}, numbered from 0", None)

    def __str__(self) -> str:
        if self.recorded is not None:
            return self.recorded.to_json()
        return {"random": f"random:{self.seed}", "slow": f"slow:{self.slow}"}.get(self.kind, self.kind)


@dataclass(frozen=True)
class Recording:
    """The turns of a run in order: (index into ``names``, how many turns in a row)."""

    names: tuple[str, ...]
    turns: tuple[tuple[int, int], ...]
    fuel: int = DEFAULT_FUEL

    def to_json(self) -> str:
        import json  # recorded schedules alone

        return json.dumps({"fuel": self.fuel, "names": self.names, "turns": self.turns}, separators=(",", ":"))


class Recorder:
    """Writes down who was taken."""

    def __init__(self, fuel: int) -> None:
        self.fuel = fuel
        self._numbers: dict[str, int] = {}
        self._turns: list[list[int]] = []

    def took(self, name: str) -> None:
        number = self._numbers.setdefault(name, len(self._numbers))
        if self._turns and self._turns[-1][0] == number:
            self._turns[-1][1] += 1
        else:
            self._turns.append([number, 1])

    def recording(self) -> Recording:
        return Recording(tuple(self._numbers), tuple((a, b) for a, b in self._turns), self.fuel)


def parse_schedule(text: str) -> Schedule:
    """A schedule of its text. Raises CompileError E1103 for one that is none."""
    word, _, rest = text.strip().partition(":")
    if text.lstrip().startswith("{"):
        return Schedule("recorded", recorded=_recording(text))
    if word in ("round-robin", "round_robin", "rr", "") and not rest:
        return Schedule()
    if word == "random":
        try:
            return Schedule("random", seed=int(rest or "0", 0))
        except ValueError:
            raise _bad(text, f"'{rest}' is not a number", "write random:7") from None
    if word == "slow" and rest:
        _matcher(rest)
        return Schedule("slow", slow=rest)
    help = "write round-robin, random:SEED, slow:NAME or a recorded schedule"
    raise _bad(text, "it is not one of the known ones", help)


def _recording(text: str) -> Recording:
    import json

    try:
        data = json.loads(text)
        names = tuple(str(name) for name in data["names"])
        turns = tuple((int(number), int(count)) for number, count in data["turns"])
        fuel = int(data.get("fuel", DEFAULT_FUEL))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        raise _bad("recorded schedule", f"it cannot be read ({type(problem).__name__}: {problem})", None) from None
    if not 1 <= fuel <= _MOST_FUEL or any(not 0 <= number < len(names) or count < 1 for number, count in turns):
        raise _bad("recorded schedule", "a number in it is out of range", None)
    return Recording(names, turns, fuel)


def _bad(text: str, why: str, help: str | None) -> CompileError:
    what = text if text == "recorded schedule" else f"schedule '{text}'"
    return CompileError(Diagnostic(BAD_SCHEDULE, f"{what} is not valid: {why}", help=help))


_WARPS = re.compile(r"(?:cta(\d{1,9})\.)?warps?(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_AGENT = re.compile(r"cta\d+\.[\w.:]+#\d+")


def _least_named(name: str) -> tuple[int, int]:
    """The numbers of the CTA and of the first warp that a name of ``slow:`` has, 0 where it has none."""
    found = re.match(r"(?:cta(\d+))?(?:(?:^|\.)warps?(\d+))?", name, re.ASCII)
    cta, warp = found.groups() if found else (None, None)
    return int(cta or 0), int(warp or 0)


def _matcher(name: str) -> Callable[[Entity], bool]:
    """Which entities a name of ``slow:`` means: a warp (``warp3``, of one CTA: ``cta0.warp3``), a role's warps
    (``warps4-7``), one agent, a CTA, or a unit."""
    warps = _WARPS.fullmatch(name)
    if warps:
        cta, first, last = warps.groups()
        low, high = int(first), int(last or first)
        if high < low:
            raise _bad(f"slow:{name}", f"there are no warps from {low} to {high}", None)

        def is_one_of(entity: Entity) -> bool:
            return (
                entity.unit == "warp"
                and low <= entity.index <= high  # type: ignore[attr-defined]  # a warp has one
                and (cta is None or entity.name.startswith(f"cta{cta}."))
            )

        return is_one_of
    if _AGENT.fullmatch(name):
        return lambda entity: entity.name == name
    if re.fullmatch(r"cta\d+", name):
        return lambda entity: entity.name.startswith(name + ".")
    if name in UNITS:
        return lambda entity: entity.unit == name
    raise _bad(
        f"slow:{name}",
        "it names no warp and no unit",
        f"write a warp (warp3, cta0.warp3, warps4-7), a CTA (cta0) or a unit ({', '.join(UNITS)})",
    )


class RoundRobin:
    def __init__(self) -> None:
        self._queue: deque[Any] = deque()
        self.add = self._queue.append
        self.take = self._queue.popleft

    def waiting(self) -> list[Any]:
        return list(self._queue)

    def __len__(self) -> int:
        return len(self._queue)


class _Random:
    def __init__(self, seed: int) -> None:
        self._entities: list[Any] = []
        self._random = random.Random(seed).random

    def add(self, entity: Any) -> None:
        self._entities.append(entity)

    def take(self) -> Any:
        entities = self._entities
        index = int(self._random() * len(entities))
        entities[index], entities[-1] = entities[-1], entities[index]
        return entities.pop()

    def waiting(self) -> list[Any]:
        return list(self._entities)

    def __len__(self) -> int:
        return len(self._entities)


class _Slow:
    """The slow ones get a turn all the same after very many of the others: these may be counting how long they wait."""

    def __init__(self, is_slow: Callable[[Entity], bool]) -> None:
        self._is_slow = is_slow
        self._passed_over = 0
        self._queue: deque[Any] = deque()
        self._slow: deque[Any] = deque()

    def add(self, entity: Any) -> None:
        (self._slow if self._is_slow(entity) else self._queue).append(entity)

    def take(self) -> Any:
        if self._slow and (not self._queue or self._passed_over >= _MOST_PASSED_OVER):
            self._passed_over = 0
            return self._slow.popleft()
        self._passed_over += 1
        return self._queue.popleft()

    def waiting(self) -> list[Any]:
        return [*self._queue, *self._slow]

    def __len__(self) -> int:
        return len(self._queue) + len(self._slow)


class _Replay:
    """After the last recorded turn it goes on round robin: a recording may be the beginning of a run."""

    def __init__(self, recording: Recording) -> None:
        self._names = recording.names
        self._turns = iter(recording.turns)
        self._entities: dict[str, Any] = {}
        self._name: str | None = ""
        self._left = 0
        self._turn = 0

    def add(self, entity: Any) -> None:
        self._entities[entity.name] = entity

    def take(self) -> Any:
        if self._left == 0 and self._name is not None:
            number, self._left = next(self._turns, (-1, 0))
            self._name = self._names[number] if number >= 0 else None
        if self._name is None:
            return self._entities.pop(next(iter(self._entities)))
        self._left -= 1
        self._turn += 1
        entity = self._entities.pop(self._name, None)
        if entity is None:
            could = ", ".join(list(self._entities)[:8])
            raise CompileError(
                Diagnostic(
                    SCHEDULE_MISMATCH,
                    f"the recorded schedule does not fit this program: turn {self._turn} is {self._name}'s, which "
                    f"cannot move there; {could} can",
                    help="replay a schedule with the same PTX, launch and arguments",
                )
            )
        return entity

    def waiting(self) -> list[Any]:
        return list(self._entities.values())

    def __len__(self) -> int:
        return len(self._entities)
