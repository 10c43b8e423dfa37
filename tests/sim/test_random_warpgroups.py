"""Random kernels of a warpgroup, sound and faulty: turns in host code against the machine's own."""

import random

import numpy as np
import pytest
from test_wgmma_warpgroups import COMMIT, FENCE, FILL, HEAD, PRODUCT, STORE

from ptxdsl.races.trace import TraceCheck
from ptxdsl.sim.launch import simulate
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.host_turns import HostTurns
from ptxdsl.sim.machine.turns import Turns

TRIPS = 4
LIMITS = Limits(steps=1 << 23)
BEGIN = "mov.u32 %r4, 0;\nsetp.eq.u32 %p, %t, %t;\n"
AGAIN = f"add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p, %r4, {TRIPS};\n@%p bra TRIP;\n"
BY_REGISTER = PRODUCT.replace("%a, %b, 1,", "%a, %b, %p,")
LATER = "setp.lt.u32 %p, %w, {0};\n@%p bra {1};\nmov.u32 %r5, 0;\n{1}S: add.u32 %r5, %r5, 1;\n" + (
    "setp.lt.u32 %p, %r5, 1100;\n@%p bra {1}S;\n{1}: setp.eq.u32 %p, %t, %t;\n"
)


def text(seed: int) -> str:
    """Products in groups, waits for all but the newest, warps that come late; in a third of them something is wrong."""
    pick = random.Random(seed)
    steps = [FENCE]
    for number in range(pick.randint(1, 8)):
        steps += pick.choices([PRODUCT, BY_REGISTER], k=pick.choice([0, 1, 1, 2, 5]))
        steps.append(COMMIT * pick.choice([1, 1, 1, 0, 2]))
        if pick.random() < 0.4:
            steps.append(f"wgmma.wait_group.sync.aligned {pick.choice([0, 0, 1, 2, 7])};\n")
        if pick.random() < 0.3:
            steps.append(LATER.format(pick.randint(1, 3), f"L{number}"))
    if pick.random() < 0.35:
        wrong = pick.choice([
            "setp.lt.u32 %p, %w, 1;\n@%p add.u64 %b, %b, 1;\nsetp.eq.u32 %p, %t, %t;\n",  # another descriptor of B
            "setp.ge.u32 %p, %w, 1;\n", "setp.lt.u32 %p, %t, 40;\n",  # scale-d that differs
            "setp.lt.u32 %p, %w, 3;\n@%p bra OVER;\n" + PRODUCT + "OVER:\n",  # a product of one warp alone
            "setp.eq.u32 %p, %t, 17;\n@%p ret;\n",
            f"setp.eq.u32 %p, %w, 2;\n@%p bra OUT;\n{PRODUCT}{COMMIT}OUT:\n",
        ])  # fmt: skip
        steps.insert(pick.randrange(len(steps) + 1), wrong)
    order = [BEGIN, "TRIP:\n", *steps, AGAIN] if pick.random() < 0.8 else [BEGIN, *steps]
    return "".join([HEAD, FILL, *order, "wgmma.wait_group.sync.aligned 0;\n", STORE, "ret;\n}\n"])


def seen(ptx: str, watched: bool) -> tuple[object, ...]:
    watch = TraceCheck() if watched else None
    out = np.zeros(128, np.float32)
    report = simulate(ptx, "k", grid=1, block=128, arguments=[out], limits=LIMITS, watch=watch)
    races = [diagnostic.render() for diagnostic in watch.found().diagnostics] if watch is not None else []
    return report.render(), repr(report.statistics), out.tolist(), races


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_the_machine_alone_does_the_same(first, monkeypatch):
    for seed in range(first, first + 10):
        ptx = text(seed)
        for watched in (False, True):
            results = []
            for useful in (True, False):
                monkeypatch.setattr(HostTurns, "useful", useful)
                results.append(seen(ptx, watched))
            assert results[0] == results[1], ptx


def test_all_but_the_first_warp_s_part_of_a_product_is_host_code_s(monkeypatch):
    executed = []
    whole = Turns.host
    monkeypatch.setattr(
        Turns, "host", lambda self, *given: (executed.append(self.machine.sites[given[2]]), whole(self, *given))
    )
    report = simulate(
        "".join([HEAD, FILL, BEGIN, "TRIP:\n", FENCE, PRODUCT, COMMIT, "wgmma.wait_group.sync.aligned 0;\n"])
        + AGAIN.replace(f", {TRIPS};", ", 100;") + "ret;\n}\n",
        "k", grid=1, block=128, arguments=[np.zeros(128, np.float32)],
    )  # fmt: skip
    assert report.finished
    opcodes = [site.instruction.opcode for site in executed if site.instruction.parts[0] == "wgmma"]
    assert sum(opcode.startswith("wgmma.mma_async") for opcode in opcodes) == 100
    assert len(opcodes) < 110
