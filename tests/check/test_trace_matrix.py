"""What orders the work of tensor cores with that of threads: each edge with and without, as in ``test_trace_edges``."""

import pytest
from tcgen05_packing import pack_shared
from test_trace_edges import DRAIN, FENCE, OVER, RACE, array, parts
from traced import body, kinds

BAR = "@%p0 mbarrier.init.shared::cta.b64 [bar], 1; @%p0 fence.mbarrier_init.release.cluster;"
DONE = "{0}: mbarrier.try_wait.parity.shared::cta.b64 %p15, [bar], 0; @!%p15 bra {0};"
# Each of 128 threads has 32 bytes of the tile, at %r1.
MINE = "mov.u32 %r9, tile; mad.lo.u32 %r1, %t, 32, %r9; shr.u32 %r10, %r9, 4; cvt.u64.u32 %d20, %r10;"
FILL = "st.shared.v4.u32 [%r1], {%t, %t, %t, %t}; st.shared.v4.u32 [%r1+16], {%t, %t, %t, %t};"

WGMMA = (
    ".reg .f32 %f<4>; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;"
    "mov.b64 %d21, 0x1000080000; or.b64 %d20, %d20, %d21; add.u64 %d22, %d20, 128;"
)
PRODUCT = (
    "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d20, %d22,"
    "1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;"
)
DRAINED = "wgmma.wait_group.sync.aligned 0;"

PROXY = "fence.proxy.async;"
FILLED = f"{MINE}{WGMMA}{FILL}{PROXY} bar.sync 0; {PRODUCT}"

SYNC = "bar.sync 0;"
ALLOC = (
    "setp.lt.u32 %p1, %t, 32; mov.u32 %r20, tile+4096; @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"
    "[tile+4096], 32;"
)
ADDRESS = "ld.shared.u32 %r21, [tile+4096]; and.b32 %r22, %t, 0x60; shl.b32 %r22, %r22, 16; add.u32 %r22, %r22, %r21;"
FREE = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r21, 32;"
STORE = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r22], {%t}; tcgen05.wait::st.sync.aligned; bar.sync 0;"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r30}, [%r22];"
LOADED = "tcgen05.wait::ld.sync.aligned;"
COPY = (
    f"mov.u64 %d21, {pack_shared(0, 16, 128, 'none')}; or.b64 %d20, %d20, %d21;"
    "@%p0 tcgen05.cp.cta_group::1.128x256b [%r21], %d20;"
    "@%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];"
)
TENSOR = f"{ALLOC}{SYNC}{ADDRESS}"

# By what is marked: the class that is found without it, and the body.
WARPGROUPS = {
    "stores before a product": (FENCE, f"{MINE}{WGMMA}{FILL}<<{PROXY}>>{SYNC}{PRODUCT}{DRAINED}"),
    "a product has read": (DRAIN, f"{FILLED}<<{DRAINED}>>{SYNC}{FILL}{DRAINED}"),
    "the groups that are waited for": (
        DRAIN, f"{FILLED} wgmma.wait_group.sync.aligned <<0|1>>;{SYNC}{FILL}{DRAINED}",
    ),
    "all warps have drained it": (OVER, f"{FILLED}{DRAINED}<<{SYNC}>> xor.b32 %r1, %r1, 1024; {FILL}"),
}  # fmt: skip
TENSOR_CORES = {
    "the address of tensor memory": (RACE, f"{MINE}{ALLOC}<<{SYNC}>>{ADDRESS}{SYNC}{FREE}"),
    "loads before it is given back": (OVER, f"{MINE}{TENSOR}{STORE}{LOAD}{LOADED}<<{SYNC}>>{FREE}"),
    "a load that is waited for": (DRAIN, f"{MINE}{TENSOR}{STORE}{LOAD}<<{LOADED}>>{SYNC}{FREE}"),
    "stores before a copy": (
        FENCE, f"{BAR}{MINE}{FILL}<<{PROXY}>>{TENSOR}{COPY}{DONE.format('D')}{SYNC}{FREE}",
    ),
    "a copy has read": (
        DRAIN,
        f"{BAR}{MINE}{FILL}{PROXY}{TENSOR}{COPY}<<{DONE.format('D')}>>{SYNC} @%p1 bra MORE; {FILL} MORE:"
        f"{DONE.format('E')}{SYNC}{FREE}",
    ),
}  # fmt: skip
EDGES = {name: ("sm_90a", *edge) for name, edge in WARPGROUPS.items()}
EDGES |= {name: ("sm_100a", *edge) for name, edge in TENSOR_CORES.items()}


@pytest.mark.parametrize("name", EDGES)
def test_an_edge(name: str) -> None:
    target, kind, text = EDGES[name]
    good, bad = parts(text)
    assert kinds(body(good, array(), threads=128, target=target)) == []
    assert kinds(body(bad, array(), threads=128, target=target)) == [kind]
