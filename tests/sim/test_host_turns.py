"""Turns in host code are the machine's own turns, only sooner: without them a run is the same."""

from pathlib import Path

import numpy as np
import pytest
from fault_kernels import read

import ptxdsl
from ptxdsl.sim.machine.host_turns import HostTurns
from ptxdsl.sim.machine.turns import Turns

ROOT = Path(__file__).parents[2]
FAULTY = sorted((ROOT / "tests" / "sim" / "faults").glob("*_faulty.pdsl"))
FIRST_TURNS = 100  # until each warp has come to each barrier once


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_the_machine_alone_reports_the_same(path, monkeypatch):
    kernel = read(path)
    *_, names = kernel.cases(next(kernel.variants()))
    seen = []
    for useful in (True, False):
        monkeypatch.setattr(HostTurns, "useful", useful)
        report, right = kernel.run(names, "round-robin")
        seen.append((report.render(), repr(report.statistics), right))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("schedule", ["round-robin", "random:1"])
def test_a_ring_that_has_filled_goes_on_in_host_code(schedule, monkeypatch):
    taken = []
    for name in ("turn", "finish"):
        whole = getattr(Turns, name)
        monkeypatch.setattr(Turns, name, lambda self, *given, whole=whole: (taken.append(given), whole(self, *given)))
    kernel = ptxdsl.load(ROOT / "samples" / "04_kernel_a.pdsl").kernel
    src, res = np.arange(32 * 500, dtype=np.float32), np.zeros(32 * 500, np.float32)
    report = kernel.simulate(src, res, 500, schedule=schedule)
    assert report.finished and np.array_equal(res, src)
    assert report.statistics.turns > 2000
    assert (len(taken) < FIRST_TURNS) == (schedule == "round-robin")
