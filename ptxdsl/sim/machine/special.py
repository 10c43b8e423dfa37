"""Special registers as handlers read them. Source: PTX ISA, "Special Registers".

Time: a cycle is a nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptxdsl.sim.machine.warp import Warp

AXES = {"x": 0, "y": 1, "z": 2}
LANE = np.arange(32, dtype=np.uint32)

_LANE_MASKS = {
    "%lanemask_eq": np.uint32(1) << LANE,
    "%lanemask_lt": (np.uint32(1) << LANE) - np.uint32(1),
    "%lanemask_le": ((np.uint64(2) << LANE.astype(np.uint64)) - np.uint64(1)).astype(np.uint32),
    "%lanemask_ge": ~((np.uint32(1) << LANE) - np.uint32(1)),
    "%lanemask_gt": ~((np.uint64(2) << LANE.astype(np.uint64)) - np.uint64(1)).astype(np.uint32),
}

# Of three components: the record that holds them and its field.
_VECTORS: dict[str, tuple[str, str]] = {
    "%ntid": ("launch", "thread_count"),
    "%nctaid": ("launch", "cta_count"),
    "%nclusterid": ("launch", "cluster_count"),
    "%cluster_nctaid": ("launch", "cluster_shape"),
    "%ctaid": ("cta", "id"),
    "%clusterid": ("cta", "cluster_id"),
    "%cluster_ctaid": ("cta", "cluster_cta_id"),
}

_SCALARS: dict[str, Callable[[Warp, Any], int]] = {
    "%warpid": lambda warp, launch: warp.index,
    "%nwarpid": lambda warp, launch: len(warp.cta.warps),
    "%cluster_ctarank": lambda warp, launch: warp.cta.rank,
    "%cluster_nctarank": lambda warp, launch: len(warp.cta.cluster.ctas),
    "%smid": lambda warp, launch: int(warp.cta.storage.fields["smid"][0]),
    "%dynamic_smem_size": lambda warp, launch: int(launch["dynamic_shared"][0]),
    "%total_smem_size": lambda warp, launch: int(launch["total_shared"][0]),
    "%clock": lambda warp, launch: warp.clock,
    "%clock_hi": lambda warp, launch: warp.clock >> 32,
    "%clock64": lambda warp, launch: warp.clock,
    "%globaltimer": lambda warp, launch: warp.clock,
    "%globaltimer_lo": lambda warp, launch: warp.clock,
    "%globaltimer_hi": lambda warp, launch: warp.clock >> 32,
}


def special_register(name: str, warp: Warp, launch: Any) -> Any:
    """32 values of uint64, or None where there is no such register."""
    if name == "%laneid":
        return LANE.astype(np.uint64)
    if name in _SCALARS:
        return np.full(32, _SCALARS[name](warp, launch) & 0xFFFFFFFFFFFFFFFF, np.uint64)
    if name in _LANE_MASKS:
        return _LANE_MASKS[name].astype(np.uint64)
    base, _, axis = name.partition(".")
    if axis in AXES:
        if base == "%tid":
            return warp.storage.tid[AXES[axis]].astype(np.uint64)
        if base in _VECTORS:
            record, field = _VECTORS[base]
            fields = launch if record == "launch" else warp.cta.storage.fields
            return np.full(32, int(fields[field][0][AXES[axis]]), np.uint64)
    return None
