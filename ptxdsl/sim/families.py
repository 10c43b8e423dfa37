"""All families of host instructions: importing this module registers their handlers."""

from __future__ import annotations

from ptxdsl.sim import (
    async_store,
    barriers,
    bulk,
    cp_async,
    ldmatrix,
    mbarrier_instructions,
    mma,
    printf,
    proxy,
    sync,
    tcgen05_alloc,
    tcgen05_mma,
    tcgen05_move,
    tcgen05_sync,
    tensor_map_instructions,
    tma,
    wgmma,
    wmma,
)

FAMILIES = (
    async_store,
    barriers,
    bulk,
    cp_async,
    ldmatrix,
    mbarrier_instructions,
    mma,
    printf,
    proxy,
    sync,
    tcgen05_alloc,
    tcgen05_mma,
    tcgen05_move,
    tcgen05_sync,
    tensor_map_instructions,
    tma,
    wgmma,
    wmma,
)
