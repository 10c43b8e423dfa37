"""Small random kernels, and all of their interleavings one by one: what the exploration is held against."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from async_kernels import kernel

from ptxdsl.explore.explore import Bounds, Exploration, _Node, _Search
from ptxdsl.sim.launch import Report, simulate
from ptxdsl.sim.limits import Limits

Seen = set[tuple[str, str, bytes]]  # status, code, and of finished runs the results

WAIT = "L{number}: mbarrier.try_wait.parity.shared::cta.b64 %p5, [BAR], {parity}; @!%p5 bra L{number};"
READ = "mad.lo.u32 %r10, %r10, 31, %r11;"
# A fence or a nap ends a turn: others may come between.
OPERATIONS = {
    "store": "st.shared.u32 [tile], {number}; nanosleep.u32 1;",
    "store another": "st.shared.u32 [tile+4], {number}; fence.proxy.async;",
    "load": "ld.shared.u32 %r11, [tile]; " + READ + " fence.proxy.async;",
    "load another": "ld.shared.u32 %r11, [tile+4]; " + READ + " fence.proxy.async;",
    "fence": "fence.proxy.async;",
    "arrive": "mbarrier.arrive.shared::cta.b64 _, [bar];",
    "arrive at another": "mbarrier.arrive.shared::cta.b64 _, [bar+8];",
    "wait": WAIT.replace("BAR", "bar"),
    "wait for another": WAIT.replace("BAR", "bar+8"),
    "look": "mbarrier.test_wait.parity.shared::cta.b64 %p5, [bar], {parity}; selp.u32 %r11, 1, 2, %p5; " + READ,
    "meet": "bar.sync 1, 64;",
    "meet nobody": "bar.sync 1, 32;",
    "come by": "bar.arrive 1, 64;",
    "atomic": "atom.shared.add.u32 %r11, [tile], {number}; " + READ + " fence.proxy.async;",
    "copy": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+8], 16;"
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile+16], [%d0], 16, [bar+8];"
    "ld.shared.u32 %r11, [tile+16]; " + READ,
}  # fmt: skip


def program(seed: int) -> tuple[str, int]:
    """The PTX of a kernel of a few warps, and how many."""
    choose = random.Random(seed)
    warps = choose.choice([2, 2, 2, 3])
    length = choose.choice([2, 3]) if warps == 2 else 1
    lines = [
        "setp.ne.u32 %p2, %l, 0; shr.u32 %r50, %t, 5; setp.ne.u32 %p3, %t, 0; @%p3 bra INIT;",
        f"mbarrier.init.shared::cta.b64 [bar], {choose.choice([1, 1, 2])}; mbarrier.init.shared::cta.b64 [bar+8], 1;",
        "st.shared.v2.u32 [tile], {%r63, %r63}; st.shared.u32 [tile+16], 0; fence.mbarrier_init.release.cluster;",
        "INIT: bar.sync 0; mov.u32 %r10, 0; @%p2 bra END;",
        *(f"setp.eq.u32 %p4, %r50, {warp}; @%p4 bra W{warp};" for warp in range(warps)),
    ]
    for warp in range(warps):
        lines.append(f"W{warp}:")
        for i in range(length):
            text = OPERATIONS[choose.choice(list(OPERATIONS))]
            lines.append(text.format(number=10 * warp + i + 1, parity=choose.choice([0, 0, 1])))
        lines.append(f"st.global.u32 [%d1+{4 * warp}], %r10; bra END;")
    return kernel("\n".join(["mov.u32 %r63, 0;", *lines, "END:"]), ".param .u64 a0, .param .u64 a1"), warps


class _Everything(_Search):
    """Tries everybody everywhere."""

    def _new_node(self, enabled: tuple[str, ...]) -> _Node:
        node = super()._new_node(enabled)
        return _Node(enabled, node.taken, {}, {}, set(enabled))

    def _reverse(self, *_: Any) -> None:
        pass


def outcomes(seed: int, everything: bool, bounds: Bounds) -> tuple[Seen, Exploration]:
    """What the interleavings of a random kernel come to."""
    ptx, warps = program(seed)
    source, results = np.arange(77, 81, dtype=np.uint32), np.zeros(4, np.uint32)
    seen: Seen = set()

    def run(schedule: Any, watch: Any) -> Report:
        report = simulate(
            ptx,
            grid=1,
            block=32 * warps,
            arguments=[source, results],
            schedule=schedule,
            limits=Limits(turns=2000),
            record=True,
            watch=watch,
        )
        code = report.diagnostics[0].code if report.diagnostics and not report.finished else ""
        seen.add((report.status, code, results.tobytes() if report.finished else b""))
        return report

    search = (_Everything if everything else _Search)(run, [source, results], bounds)
    return seen, search.all()
