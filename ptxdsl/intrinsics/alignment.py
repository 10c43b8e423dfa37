"""To how many bytes an instruction wants its addresses aligned; which operands are mbarriers the rows' effects say.

Source: PTX ISA, cp.async, cp.async.bulk, ldmatrix, stmatrix, clusterlaunchcontrol.try_cancel, tcgen05.alloc; CUDA
Programming Guide, "Alignment requirements for multi-dimensional bulk tensor asynchronous copy operations".
"""

from __future__ import annotations

MBARRIER = 8

# By name of a row: (position of the operand, bytes, or the compile-time parameter that says them).
ALIGNED: dict[str, tuple[tuple[int, int | str], ...]] = {
    "cp_async_ca": ((0, "bytes"), (1, "bytes")),
    "cp_async_ca_fill": ((0, "bytes"), (1, "bytes")),
    "cp_async_cg": ((0, 16), (1, 16)),
    "cp_async_cg_fill": ((0, 16), (1, 16)),
    "cp_async_bulk_g2s": ((0, 16), (1, 16)),
    "cp_async_bulk_g2s_hint": ((0, 16), (1, 16)),
    "cp_async_bulk_g2s_multicast": ((0, 16), (1, 16)),
    "cp_async_bulk_s2s": ((0, 16), (1, 16)),
    "cp_async_bulk_s2g": ((0, 16), (1, 16)),
    "cp_async_bulk_s2g_hint": ((0, 16), (1, 16)),
    "cp_reduce_async_bulk_s2g": ((0, 16), (1, 16)),
    "cp_reduce_async_bulk_s2g_bits": ((0, 16), (1, 16)),
    "tensor_gather": ((0, 128),),
    "tensor_gather_hint": ((0, 128),),
    "tensor_scatter": ((1, 128),),
    "tensor_scatter_hint": ((1, 128),),
    "tensor_load": ((0, 128),),
    "tensor_load_hint": ((0, 128),),
    "tensor_load_multicast": ((0, 128),),
    "tensor_load_multicast_hint": ((0, 128),),
    "tensor_load_pair": ((0, 128),),
    "tensor_load_pair_hint": ((0, 128),),
    "tensor_load_pair_multicast": ((0, 128),),
    "tensor_load_pair_multicast_hint": ((0, 128),),
    "tensor_store": ((1, 128),),
    "tensor_store_hint": ((1, 128),),
    "tensor_reduce": ((1, 128),),
    "tensor_reduce_hint": ((1, 128),),
    "tensormap_replace_address": ((0, 128),),
    "tensormap_replace_rank": ((0, 128),),
    "tensormap_replace_size": ((0, 128),),
    "tensormap_replace_stride": ((0, 128),),
    "tensormap_replace_choice": ((0, 128),),
    "tensormap_cp_fence_proxy_row": ((0, 128), (1, 128)),
    "ldmatrix_x1": ((0, 16),),
    "ldmatrix_x2": ((0, 16),),
    "ldmatrix_x4": ((0, 16),),
    "ldmatrix_bytes_x1": ((0, 16),),
    "ldmatrix_bytes_x2": ((0, 16),),
    "stmatrix_x1": ((0, 16),),
    "stmatrix_x2": ((0, 16),),
    "stmatrix_x4": ((0, 16),),
    "try_cancel_row": ((0, 16),),
    "try_cancel_multicast_row": ((0, 16),),
    "tcgen05_alloc_row": ((0, 4),),
}
