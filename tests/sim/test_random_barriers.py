"""Random kernels with barriers of threads, sound and faulty: turns in host code against the machine's own."""

import random

import numpy as np
import pytest
from sim_kernels import INDEX, kernel

from ptxdsl.races.trace import TraceCheck
from ptxdsl.sim.launch import simulate
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.host_turns import HostTurns
from ptxdsl.sim.machine.turns import Turns

WARPS, TRIPS, STEPS = 4, 5, 4
SHARED = ".shared .align 8 .b8 words[512]; "
LIMITS = Limits(steps=1 << 20)


class RandomKernel:
    """Each warp goes round its own loop. Most barriers are met by all of their warps, in the same order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.faulty = self.random.random() < 0.4
        parties = [self.random.sample(range(WARPS), self.random.randint(2, WARPS)) for _ in range(STEPS)]
        counts = [
            "" if len(party) == WARPS and self.random.random() < 0.5 else str(32 * len(party)) for party in parties
        ]
        self.bodies = [
            [self.step(number, warp, *step) for number, step in enumerate(zip(parties, counts, strict=True), 1)]
            for warp in range(WARPS)
        ]

    def step(self, number: int, warp: int, party: list[int], count: str) -> str:
        pick = self.random
        touch = f"st.shared.u32 [%r3+{4 * pick.randrange(4)}], %r2; "
        if pick.random() < 0.5:
            touch = f"ld.shared.u32 %r6, [%r3+{4 * pick.randrange(4)}]; add.u32 %r2, %r2, %r6; "
        if warp not in party and not (self.faulty and pick.random() < 0.05):
            return touch
        if self.faulty and pick.random() < 0.05:
            count = str(32 * pick.randint(0, WARPS + 1))
        if pick.random() < 0.3:  # operands that are registers
            count = count and f"mov.u32 %r11, {count}; {{}}, %r11; "
            wait = (count or "{}; ").format(f"mov.u32 %r10, {number}; {{}} %r10")
        else:
            wait = f"{{}} {number}{f', {count}' if count else ''}; "
        kind = pick.choices(["bar.sync", "barrier.sync", "barrier.sync.aligned"], [4, 2, 1])[0]
        if count and pick.random() < 0.2 and warp != party[0]:
            kind = "bar.arrive"
        text = touch + wait.format(kind)
        if kind == "barrier.sync" and pick.random() < 0.3:  # first some of the lanes, then the others
            half = f"setp.lt.u32 %p3, %r5, {pick.randrange(1, 32)}; @%p3 bra S{warp}_{number}; "
            text += f"{half}{touch}S{warp}_{number}: {touch}"
        return text

    def text(self) -> str:
        lines = [INDEX, "mov.u32 %r2, %r1; mov.u32 %r3, words; and.b32 %r5, %r1, 31; shr.u32 %r7, %r1, 5;"]
        for warp, steps in enumerate(self.bodies):
            trips = self.random.choice([TRIPS] * 9 + [TRIPS - 1]) if self.faulty else TRIPS
            lines += [
                f"setp.ne.u32 %p1, %r7, {warp}; @%p1 bra E{warp}; mov.u32 %r4, 0;",
                f"L{warp}: {' '.join(steps)}",
                f"add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, {trips}; @%p2 bra L{warp}; bra DONE;",
                f"E{warp}:",
            ]
        return kernel("\n".join([*lines, "DONE: st.global.u32 [%rd1], %r2; ret;"]), "out:u64", declarations=SHARED)


def seen(text: str, watched: bool) -> tuple[object, ...]:
    watch = TraceCheck() if watched else None
    out = np.zeros(32 * WARPS, np.uint32)
    report = simulate(text, grid=1, block=32 * WARPS, arguments=[out], limits=LIMITS, watch=watch)
    races = [diagnostic.render() for diagnostic in watch.found().diagnostics] if watch is not None else []
    return report.render(), repr(report.statistics), out.tolist(), races


@pytest.mark.parametrize("first", range(0, 48, 8))
def test_the_machine_alone_does_the_same(first, monkeypatch):
    for seed in range(first, first + 8):
        text = RandomKernel(seed).text()
        for watched in (False, True):
            results = []
            for useful in (True, False):
                monkeypatch.setattr(HostTurns, "useful", useful)
                results.append(seen(text, watched))
            assert results[0] == results[1], text


def test_most_turns_are_host_code_s(monkeypatch):
    taken = []
    for name in ("turn", "finish"):
        whole = getattr(Turns, name)
        monkeypatch.setattr(Turns, name, lambda self, *given, whole=whole: (taken.append(given), whole(self, *given)))
    loop = "L: bar.sync 3, 128; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 500; @%p1 bra L; ret;"
    text = kernel(f"{INDEX} mov.u32 %r2, 0; {loop}", "out:u64")
    report = simulate(text, grid=1, block=128, arguments=[np.zeros(128, np.uint32)])
    assert report.finished and report.statistics.turns > 2000 and len(taken) < 40


@pytest.mark.parametrize("second", ["bar.sync 1, 96;", "bar.sync 1;", "bar.sync 1, 128; bar.sync 17;"])
def test_what_is_wrong_in_a_later_generation_is_told_alike(second, monkeypatch):
    loop = "mov.u32 %r2, 0; {0}: bar.sync 1, 64; add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra {0};"
    body = (
        f"setp.lt.u32 %p1, %r1, 32; @%p1 bra B; {loop.format('M')} bar.sync 1, 64; ret; B: {loop.format('L')} {second}"
    )
    results = []
    for useful in (True, False):
        monkeypatch.setattr(HostTurns, "useful", useful)
        results.append(seen(kernel(INDEX + body + " ret;", "out:u64"), True))
    assert results[0] == results[1]
    assert "error[" in results[0][0]
