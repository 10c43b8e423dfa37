"""The trace check finds the same, and the simulator reports the same, with turns in host code and without."""

import pytest
from corpus import CLEAN, FAULTY, FIXED, read

from ptxdsl.races.trace import TraceCheck, check_trace
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.host_turns import HostTurns

MEETS = ("named_barrier", "wgmma", "barrier()")
KERNELS = [path for path in (*CLEAN, *FIXED, *FAULTY) if any(word in path.read_text("utf-8") for word in MEETS)]
TRIPS = 7
LIMITS = Limits(steps=1 << 20, turns=1 << 16)


def seen(entry, names):
    given = entry.bound(names).host()
    found, report = check_trace(
        entry.compiled(names), given, grid=entry.grid, block=entry.block, smem=entry.smem, limits=LIMITS
    )
    arrays = [argument.tobytes() for argument in given if hasattr(argument, "tobytes")]
    return [*map(str, found.diagnostics)], found.incomplete, report.render(), repr(report.statistics), arrays


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_the_machine_alone_shows_the_same(path, monkeypatch):
    entry = read(path)
    number = next((argument.name for argument in entry.arguments if argument.size is None), None)
    names = {**entry.small(), **({number: TRIPS} if number is not None else {})}
    results = []
    for useful in (True, False):
        monkeypatch.setattr(HostTurns, "useful", useful)
        results.append(seen(entry, names))
    assert results[0] == results[1]


def test_turns_are_taken_in_host_code(monkeypatch):
    """Else the two are the same for no reason."""
    told = []
    whole = TraceCheck.happened
    monkeypatch.setattr(TraceCheck, "happened", lambda self, *given: (told.append(1), whole(self, *given)))
    for path in KERNELS:
        if path.stem in ("release_by_warps", "22_given_back_before_all_have_read_fixed"):
            before = len(told)
            entry = read(path)
            seen(entry, entry.small())
            assert len(told) > before
