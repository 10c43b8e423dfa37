"""What lies at an address of shared or tensor memory: arrays, and the barriers of pipelines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from ptxdsl.check.boxes import affine
from ptxdsl.effects import Kind
from ptxdsl.hints import Any
from ptxdsl.protocol.expressions import ARRAY_SHIFT, CTA_SHIFT, TENSOR, TENSOR_SHIFT, Expr, array_number
from ptxdsl.protocol.model import Array, Kernel, Op, Pipeline

SHARED_BYTES = 1 << 18  # more than the shared memory of a block: no array is larger


class Layout:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._bases = [array.base for array in kernel.arrays]
        low = (1 << ARRAY_SHIFT) - 1
        # By where they begin in shared memory, the last one first.
        self._shared = sorted(
            [(array.base & low, array) for array in kernel.arrays if not array.base & TENSOR],
            key=lambda pair: pair[0],
            reverse=True,
        )

    def array(self, address: int) -> Array | None:
        """The array that an address (of any CTA) lies in, or just beyond."""
        at = address & ((1 << CTA_SHIFT) - 1)
        if self.untagged(at):
            at = self.tagged(at)
        index = bisect_right(self._bases, at) - 1
        shift = TENSOR_SHIFT if at & TENSOR else ARRAY_SHIFT
        if index < 0 or at >> shift != self._bases[index] >> shift:
            return None
        if not at & TENSOR and at - self._bases[index] >= SHARED_BYTES:  # below the next array rather
            return None
        return self.kernel.arrays[index]

    @staticmethod
    def untagged(at: int) -> bool:
        """Whether an address does not say in which array it is."""
        return at >> ARRAY_SHIFT == 0 or (at & TENSOR != 0 and (at ^ TENSOR) >> TENSOR_SHIFT == 0)

    def tagged(self, at: int) -> int:
        """The address whose low bits, where a matrix descriptor has them, are these."""
        if at & TENSOR:  # all of tensor memory, which begins at 0
            return at + (1 << TENSOR_SHIFT)
        for start, array in self._shared:
            if start <= at and (array.bytes is None or at < start + array.bytes):
                return array.base - start + at
        return at

    def stage_of(self, address: int) -> tuple[Pipeline, str, int, int, int] | None:
        """Of the barrier at an address its pipeline and side, the stage, and which one of how many of the stage."""
        for pipeline in self.kernel.pipelines:
            for side, base, subs in (
                ("producer_mbar", pipeline.full, pipeline.full_subs),
                ("consumer_mbar", pipeline.empty, pipeline.empty_subs),
            ):
                if base.op == "const" and 0 <= address - base.value < 8 * subs * pipeline.stages:
                    stage, sub = divmod((address - base.value) // 8, subs)
                    return pipeline, side, stage, sub, subs
        return None


def mixed(nodes: Sequence[Any]) -> frozenset[int]:
    """Arrays in which barriers are initialised and data lies."""
    barriers: set[int] = set()
    data: set[int] = set()
    for node in nodes:
        if not isinstance(node, Op):
            continue
        if node.kind is Kind.BAR_INIT and node.barrier is not None and node.barrier.address is not None:
            barriers.add(_array_of(node.barrier.address))
        for place in (*node.writes, *node.reads) if node.kind is not Kind.ASYNC_MMA else ():
            data.add(_array_of(place.address) if place.address is not None else 0)
    return frozenset(barriers if 0 in data else barriers & data)


@lru_cache(4096)
def _array_of(address: Expr) -> int:
    return array_number(affine(address, 1, {}))
