"""What the trace check reads off the access log: range by range, and by arrays, the same bytes."""

from collections import defaultdict

import numpy as np

import ptxdsl
from ptxdsl.cuda.simulated import simulation
from ptxdsl.races.accesses import Spaces, segments
from ptxdsl.races.ranges import Ranges
from ptxdsl.sim.watch import Watch

TEXT = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var buf = unsafe_stack_allocation[192, Float32, address_space=.SHARED, alignment=128]()
    var t = Int32(thread_idx.x)
    buf[unsafe_offset=t] = src[unsafe_offset=t]
    buf[unsafe_offset=64 + t] = src[unsafe_offset=n]
    for i in range(n):
        buf[unsafe_offset=128 + i] = 0
    barrier()
    res[unsafe_offset=t] = buf[unsafe_offset=2 * t]
    barrier()
    if t % 32 == 5:
        for i in range(n):
            res[unsafe_offset=64 + 2 * i] = buf[unsafe_offset=i]
    barrier()
    if t > 40:
        res[unsafe_offset=t] = buf[unsafe_offset=t]
"""


def touched(pieces):
    """By memory, kind and site the bytes."""
    found = defaultdict(set)
    for piece in pieces:
        starts = piece.starts
        size = piece.size
        sites = np.atleast_1d(piece.sites)
        if isinstance(starts, int):
            size //= len(sites)
            starts = starts + size * np.arange(len(sites))
        for start, site in zip(starts.tolist(), np.broadcast_to(sites, len(starts)).tolist(), strict=True):
            found[piece.cells, piece.kind, site].update(range(start, start + size))
    return found


class Both(Watch):
    """turns: of each with accesses, what they touch by arrays, and by ranges, None where they are none."""

    def begin(self, machine):
        self.log = machine.log
        self.spaces = Spaces(machine.memory, lambda key, size, own: key)
        self.ranges = Ranges(self.spaces, [False] * len(machine.sites))
        self.turns = []

    def ran(self, warp):
        if not self.log.count:
            return
        ranges = [self.ranges.pieces(warp.cta, self.log.words, self.log.count) for _ in range(2)]  # and once more
        parts = segments(self.log.take())
        arrays = [piece for _, part in parts for piece in self.spaces.pieces(warp.cta, part)]
        self.turns.append((touched(arrays), *(None if r is None else touched(r) for r in ranges)))


def test_ranges_are_what_the_arrays_say():
    watch = Both()
    src, res = np.arange(64, dtype=np.float32), np.zeros(128, np.float32)
    report = simulation(ptxdsl.loads(TEXT).kernel, [src, res, 3], "sm_90a", grid=1, block=64)(watch=watch)
    assert report.finished
    assert {ranges is None for _, ranges, _ in watch.turns} == {True, False}  # 2 * t is no range
    for arrays, first, second in watch.turns:
        assert first is None or first == second == arrays
    assert any(len(first) > 4 for _, first, _ in watch.turns if first is not None)  # rows, one place, a loop
