"""One state for all ways to a place allows no more than each of them does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ptxdsl.check import merging, values
from ptxdsl.check.facts import Bounds, Facts
from ptxdsl.check.states import State
from ptxdsl.check.unwritten import Fill
from ptxdsl.check.values import INFINITE, Sum, Symbols

WRITE, READ, OTHER = 1, 2, 4


def state(live: int, *known: int, fresh: int = 0, met: int = 0, written: int = 0) -> State:
    """Two agents, with what each knows of what has happened; the first one has events of its own."""
    made = State()
    made.live, made.known = live, list(known)
    made.proxied, made.fenced = [0, 0], [0, 0]
    made.fresh, made.met = [fresh, 0], [met, 0]
    made.fill = Fill(2)
    made.fill.written = written
    return made


def weaken(state: State, other: State) -> bool:
    return merging.weaken(state, other, 0, 0)


def test_what_is_unknown_on_one_way_is_unknown() -> None:
    stands = state(WRITE, WRITE, WRITE)
    assert weaken(stands, state(WRITE, WRITE, 0))
    assert stands.known == [WRITE, 0]


def test_what_has_not_happened_on_one_way_is_known_as_on_the_other() -> None:
    stands = state(WRITE, WRITE, 0)
    assert weaken(stands, state(READ, 0, READ))
    assert (stands.live, stands.known) == (WRITE | READ, [WRITE, READ])


def test_a_way_on_which_more_is_known_brings_nothing_new() -> None:
    stands = state(WRITE | READ, WRITE, READ)
    assert not weaken(stands, state(WRITE | READ, WRITE | READ, READ))
    assert not weaken(stands, state(WRITE, WRITE, WRITE))
    assert not weaken(stands, state(WRITE | READ | OTHER, WRITE | OTHER, READ | OTHER))
    assert stands.known == [WRITE | OTHER, READ | OTHER]


def test_threads_have_met_if_they_have_on_all_ways() -> None:
    stands = state(WRITE, WRITE, 0, fresh=WRITE, met=WRITE)
    assert not weaken(stands, state(WRITE, WRITE, 0))
    assert (stands.fresh[0], stands.met[0]) == (WRITE, WRITE)
    assert weaken(stands, state(WRITE, WRITE, 0, fresh=WRITE))
    assert (stands.fresh[0], stands.met[0]) == (WRITE, 0)


def test_bytes_are_written_if_they_are_on_all_ways() -> None:
    stands = state(WRITE, WRITE, 0, written=WRITE)
    assert weaken(stands, state(0, 0, 0))
    assert (stands.live, stands.fill.written) == (WRITE, 0)


def test_a_value_of_the_launch_has_the_bounds_that_it_has_on_any_way() -> None:
    symbols = Symbols()
    n, k = (((symbols.atom("symbol", name), 1),) for name in "nk")
    stands, other = Facts({n: Bounds(4, 8), k: Bounds(1, 1)}, {}), Facts({n: Bounds(2, 5)}, {})
    assert stands.weaken(other)
    assert stands.absolute == {n: Bounds(2, 8)}
    assert not stands.weaken(other)


def test_what_turns_have_decided_tells_of_no_launch() -> None:
    """A role left its loop to n in turn 9, which stands for later ones: n may be 12."""
    n = Symbols().atom("symbol", "n")
    loop = ((n, 1),), (), 0
    facts = Facts({}, {loop: Bounds(-INFINITE, 9, ((0, 1, 1),))})
    counters: Any = SimpleNamespace(coarse=True, threshold=0, irregular=frozenset({0}), past=lambda group: 9)
    asked = facts.settle(values.Test("lt", Sum(-7, ((n, 1),))), (), counters)
    assert isinstance(asked, list)
    assert {(one.absolute.low, one.absolute.high) for one in asked} == {(7, INFINITE), (-INFINITE, 6)}
