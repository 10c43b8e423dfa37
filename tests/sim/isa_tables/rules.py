"""What programs may do: allocation, commit, ordering and who issues what.

Source: PTX ISA 9.2, 9.7.16.1.2 "Tensor Memory Allocation", 9.7.16.5 "Issue Granularity", 9.7.16.6.2 "Pipelined tcgen05
Instructions", 9.7.16.7.1 "tcgen05.alloc, …", 9.7.16.8.1 "Access restrictions", 9.7.16.12.1 "tcgen05.commit".
Second: CUTLASS ``tmem_allocator_sm100.hpp``.
"""

from __future__ import annotations

# 9.7.16.7.1: columns that alloc and dealloc take.
ALLOCATIONS = (32, 64, 128, 256, 512)
NOT_ALLOCATIONS = (0, 16, 33, 48, 96, 1024)

# What a kernel must not do: what it is -> PTX for one warp of an otherwise correct kernel ({address}: a shared word for
# the address of an allocation, %t: an allocation of 64 columns that stands).
WRONG_ALLOCATIONS: dict[str, str] = {
    "alloc after relinquish_alloc_permit": """
        tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{address}], 32;""",
    "an allocation of more columns than the one before": """
        tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{address}], 128;""",
    "dealloc of what is not an allocation": """
        add.u32 %x, %t, 32; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %x, 64;""",
    "two cta_groups in one kernel": """
        tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;""",
}

# 9.7.16.6.2: the second of these runs after the first without anything between them (same cta_group).
PIPELINED = (
    ("mma", "mma of the same accumulator and shape"),
    ("cp", "mma"),
    ("shift", "mma"),
    ("shift", "cp.4x256b"),
    ("mma", "shift"),
)
# 9.7.16.6.2.1: what tcgen05.commit, wait::ld and wait::st wait for, of the same thread.
TRACKED = {"commit": ("mma", "cp", "shift"), "wait::ld": ("ld",), "wait::st": ("st",)}

# 9.7.16.12.1: commit arrives once, with count 1, when what the thread issued before has completed; .multicast::cluster
# on the barrier at the same offset of every CTA whose rank has its bit in the 16-bit mask.
COMMIT_COUNT = 1
COMMIT_MASK_BITS = 16

# 9.7.16.5: mma, cp, shift, commit: one thread (of the pair for cta_group::2); alloc, dealloc, relinquish: one warp (of
# each CTA); ld, st, wait: a warp.
ISSUED_BY = {
    "thread": ("mma", "cp", "shift", "commit"),
    "warp": ("alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "wait::ld", "wait::st"),
}

UNDECIDED = (
    'tcgen05.dealloc of a pair: whether it blocks ("may or may not block", 9.7.16.5)',
    "which columns an allocation gets",
)
