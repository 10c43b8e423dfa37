"""Loads and stores, atomics, and asynchronous copies by thread, in bulk and of tensors."""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.intrinsics.row import Row, asm, llvm

_ATOMIC = Effect(Kind.ATOMIC)
_READ_GLOBAL = Effect(Kind.READ, "global")
_WRITE_GLOBAL = Effect(Kind.WRITE, "global")
_CP_ASYNC = Effect(Kind.ASYNC_COPY, "shared", completes_on="cp-async-group")
_BULK_IN = Effect(
    Kind.ASYNC_COPY, "shared", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"
)
_BULK_PEER = Effect(
    Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"
)
_BULK_OUT = Effect(Kind.ASYNC_COPY, "global", proxy="async", bytes=2, completes_on="bulk-group")
_TENSOR_IN = Effect(Kind.ASYNC_COPY, "shared", proxy="async", scope="cluster", barrier=2, completes_on="mbarrier")
_TENSOR_MULTICAST = Effect(
    Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=2, completes_on="mbarrier"
)
_TENSOR_OUT = Effect(Kind.ASYNC_COPY, "global", proxy="async", completes_on="bulk-group")

MEMORY: dict[str, Row] = {
    # loads and stores of global memory; {hint} is a cache operator with its dot (".nc" too), or empty
    "ld_global_b8": asm("ld.global{hint}.b8 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b16": asm("ld.global{hint}.b16 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b32": asm("ld.global{hint}.b32 $r0, [$0];", _READ_GLOBAL),
    "ld_global_b64": asm("ld.global{hint}.b64 $r0, [$0];", _READ_GLOBAL),
    "ld_global_v2_b32": asm("ld.global{hint}.v2.b32 {$r0, $r1}, [$0];", _READ_GLOBAL),
    "ld_global_v4_b32": asm("ld.global{hint}.v4.b32 {$r0, $r1, $r2, $r3}, [$0];", _READ_GLOBAL),
    "st_global_b8": asm("st.global{hint}.b8 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b16": asm("st.global{hint}.b16 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b32": asm("st.global{hint}.b32 [$0], $1;", _WRITE_GLOBAL),
    "st_global_b64": asm("st.global{hint}.b64 [$0], $1;", _WRITE_GLOBAL),
    "st_global_v2_b32": asm("st.global{hint}.v2.b32 [$0], {$1, $2};", _WRITE_GLOBAL),
    "st_global_v4_b32": asm("st.global{hint}.v4.b32 [$0], {$1, $2, $3, $4};", _WRITE_GLOBAL),
    # the same with an eviction priority or prefetch size in {hint}
    "ld_global_evict_b16": asm("ld.global{hint}.b16 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_b32": asm("ld.global{hint}.b32 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_b64": asm("ld.global{hint}.b64 $r0, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_v2_b32": asm("ld.global{hint}.v2.b32 {$r0, $r1}, [$0];", _READ_GLOBAL, "cache.hint"),
    "ld_global_evict_v4_b32": asm("ld.global{hint}.v4.b32 {$r0, $r1, $r2, $r3}, [$0];", _READ_GLOBAL, "cache.hint"),
    "st_global_evict_b16": asm("st.global{hint}.b16 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_b32": asm("st.global{hint}.b32 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_b64": asm("st.global{hint}.b64 [$0], $1;", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_v2_b32": asm("st.global{hint}.v2.b32 [$0], {$1, $2};", _WRITE_GLOBAL, "cache.hint"),
    "st_global_evict_v4_b32": asm("st.global{hint}.v4.b32 [$0], {$1, $2, $3, $4};", _WRITE_GLOBAL, "cache.hint"),
    "prefetch_global_l2": asm("prefetch.global.L2 [$0];", Effect(Kind.READ, "global")),
    "createpolicy": asm("createpolicy.fractional.L2::{priority}.b64 $r0, 1.0;", PURE, "cache.hint"),
    # distributed shared memory
    "mapa": asm("mapa.shared::cluster.u32 $r0, $0, $1;", PURE, "cluster"),
    "ld_cluster_b32": asm("ld.shared::cluster.b32 $r0, [$0];", Effect(Kind.READ, "cluster"), "cluster"),
    "ld_cluster_b64": asm("ld.shared::cluster.b64 $r0, [$0];", Effect(Kind.READ, "cluster"), "cluster"),
    "st_cluster_b32": asm("st.shared::cluster.b32 [$0], $1;", Effect(Kind.WRITE, "cluster"), "cluster"),
    "st_cluster_b64": asm("st.shared::cluster.b64 [$0], $1;", Effect(Kind.WRITE, "cluster"), "cluster"),
    "st_async_b32": asm(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];",
        Effect(Kind.ASYNC_COPY, "cluster", scope="cluster", barrier=2, completes_on="mbarrier"),
        "st.async",
    ),
    "st_async_b64": asm(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [$0], $1, [$2];",
        Effect(Kind.ASYNC_COPY, "cluster", scope="cluster", barrier=2, completes_on="mbarrier"),
        "st.async",
    ),
    # cluster launch control: the answer is 16 bytes, opaque
    "try_cancel_row": asm(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [$0], [$1];",
        Effect(Kind.ASYNC_COPY, "shared", proxy="async", scope="cta", barrier=1, completes_on="mbarrier"),
        "clusterlaunchcontrol",
    ),
    "try_cancel_multicast_row": asm(
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 "
        "[$0], [$1];",
        Effect(Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=1, completes_on="mbarrier"),
        "clusterlaunchcontrol.multicast",
    ),
    "query_cancel_row": asm(
        "{.reg .b128 q; .reg .pred p; mov.b128 q, {$0, $1}; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 "
        "p, q; selp.b32 $r0, 1, 0, p;}",
        PURE,
        "clusterlaunchcontrol",
    ),
    "query_first_cta_row": asm(
        # Of a refusal there are no coordinates to ask for (PTX ISA, clusterlaunchcontrol.query_cancel).
        "{.reg .b128 q; .reg .pred p; .reg .b32 x, y, z; mov.b128 q, {$0, $1}; "
        "mov.b32 x, 0; mov.b32 y, 0; mov.b32 z, 0; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, q; "
        "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {x, y, z, _}, q; "
        "mov.b32 $r0, x; mov.b32 $r1, y; mov.b32 $r2, z;}",
        PURE,
        "clusterlaunchcontrol",
    ),
    # cp.async: 4, 8 or 16 bytes
    "cp_async_ca": asm("cp.async.ca.shared.global [$0], [$1], {bytes};", _CP_ASYNC, "cp.async"),
    "cp_async_cg": asm("cp.async.cg.shared.global [$0], [$1], 16;", _CP_ASYNC, "cp.async"),
    "cp_async_ca_fill": asm("cp.async.ca.shared.global [$0], [$1], {bytes}, $2;", _CP_ASYNC, "cp.async"),
    "cp_async_cg_fill": asm("cp.async.cg.shared.global [$0], [$1], 16, $2;", _CP_ASYNC, "cp.async"),
    "cp_async_commit_group": llvm(
        "void @llvm.nvvm.cp.async.commit.group()", Effect(Kind.COMMIT, completes_on="cp-async-group"), "cp.async"
    ),
    "cp_async_wait_group": llvm(
        "void @llvm.nvvm.cp.async.wait.group(i32 {n})",
        Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"),
        "cp.async",
    ),
    "cp_async_wait_all": llvm(
        "void @llvm.nvvm.cp.async.wait.all()",
        Effect(Kind.WAIT_GROUP, "shared", completes_on="cp-async-group"),
        "cp.async",
    ),
    "cp_async_mbarrier_arrive": asm(
        "cp.async.mbarrier.arrive.shared.b64 [$0];",
        Effect(Kind.COMMIT, "shared", scope="cta", barrier=0, completes_on="mbarrier"),
        "cp.async",
    ),
    "cp_async_mbarrier_arrive_noinc": asm(
        "cp.async.mbarrier.arrive.noinc.shared.b64 [$0];",
        Effect(Kind.COMMIT, "shared", scope="cta", barrier=0, completes_on="mbarrier"),
        "cp.async",
    ),
    # cp.async.bulk: multiples of 16 bytes, addresses aligned to 16 bytes
    "cp_async_bulk_g2s": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        _BULK_IN,
        "tma",
    ),
    "cp_async_bulk_g2s_hint": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [$0], [$1], $2, [$3], $4;",
        _BULK_IN,
        "tma",
    ),
    "cp_async_bulk_g2s_multicast": asm(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[$0], [$1], $2, [$3], $4;",
        Effect(Kind.ASYNC_COPY, "cluster", proxy="async", scope="cluster", barrier=3, bytes=2, completes_on="mbarrier"),
        "tma.multicast",
    ),
    "cp_async_bulk_s2s": asm(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [$0], [$1], $2, [$3];",
        _BULK_PEER,
        "tma",
    ),
    "cp_async_bulk_s2g": asm("cp.async.bulk.global.shared::cta.bulk_group [$0], [$1], $2;", _BULK_OUT, "tma"),
    "cp_async_bulk_s2g_hint": asm(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [$0], [$1], $2, $3;", _BULK_OUT, "tma"
    ),
    "cp_reduce_async_bulk_s2g": asm(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{T} [$0], [$1], $2;", _BULK_OUT, "tma"
    ),
    "cp_reduce_async_bulk_s2g_bits": asm(
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.b{width} [$0], [$1], $2;", _BULK_OUT, "tma"
    ),
    "cp_async_bulk_prefetch_l2": asm(
        "cp.async.bulk.prefetch.L2.global [$0], $1;", Effect(Kind.READ, "global", bytes=1), "tma"
    ),
    "cp_async_bulk_commit_group": llvm(
        "void @llvm.nvvm.cp.async.bulk.commit.group()",
        Effect(Kind.COMMIT, proxy="async", completes_on="bulk-group"),
        "tma",
    ),
    "cp_async_bulk_wait_group_all": llvm(
        "void @llvm.nvvm.cp.async.bulk.wait.group(i32 {n})",
        Effect(Kind.WAIT_GROUP, "global", proxy="async", completes_on="bulk-group"),
        "tma",
    ),
    "cp_async_bulk_wait_group_read": llvm(
        "void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 {n})",
        Effect(Kind.WAIT_GROUP, "shared", proxy="async", completes_on="bulk-group"),
        "tma",
    ),
}

# Atomics: {sem} relaxed, acquire, release or acq_rel; {scope} cta, cluster, gpu or sys; {space} with its dot, or empty
# for a generic address.
ATOMICS: dict[str, Row] = {
    "atom_add": asm("atom.{sem}.{scope}{space}.add.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_add_s64": asm("atom.{sem}.{scope}{space}.add.u64 $r0, [$0], $1;", _ATOMIC),
    "atom_add_f16": asm("atom.{sem}.{scope}{space}.add.noftz.f16 $r0, [$0], $1;", _ATOMIC),
    "atom_add_bf16": asm("atom.{sem}.{scope}{space}.add.noftz.bf16 $r0, [$0], $1;", _ATOMIC, "bf16.add"),
    "atom_min": asm("atom.{sem}.{scope}{space}.min.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_max": asm("atom.{sem}.{scope}{space}.max.{T} $r0, [$0], $1;", _ATOMIC),
    "atom_and": asm("atom.{sem}.{scope}{space}.and.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_or": asm("atom.{sem}.{scope}{space}.or.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_xor": asm("atom.{sem}.{scope}{space}.xor.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_exch": asm("atom.{sem}.{scope}{space}.exch.{b} $r0, [$0], $1;", _ATOMIC),
    "atom_cas": asm("atom.{sem}.{scope}{space}.cas.{b} $r0, [$0], $1, $2;", _ATOMIC),
    "ld_atomic": asm("ld.{sem}.{scope}{space}.{b} $r0, [$0];", Effect(Kind.ATOMIC)),
    "st_atomic": asm("st.{sem}.{scope}{space}.{b} [$0], $1;", Effect(Kind.ATOMIC)),
    "ld_volatile": asm("ld.volatile{space}.{b} $r0, [$0];", Effect(Kind.READ)),
}

# Tensor maps changed by the kernel: PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy". The copy reads shared and
# writes global memory; for the order of threads it is a read.
_REPLACE = "tensormap.replace.tile.%s.shared::cta.b1024.%s [$0], %s;"
_REPLACES = Effect(Kind.WRITE, "shared", proxy="tensormap")
_MAP_FENCE = Effect(Kind.FENCE, proxy="tensormap")

TENSOR_MAPS: dict[str, Row] = {
    "tensormap_replace_address": asm(_REPLACE % ("global_address", "b64", "$1"), _REPLACES, "tensormap.replace"),
    "tensormap_replace_rank": asm(_REPLACE % ("rank", "b32", "$1"), _REPLACES, "tensormap.replace"),
    "tensormap_replace_size": asm(_REPLACE % ("{field}", "b32", "{dim}, $1"), _REPLACES, "tensormap.replace"),
    "tensormap_replace_stride": asm(_REPLACE % ("global_stride", "b64", "{dim}, $1"), _REPLACES, "tensormap.replace"),
    "tensormap_replace_choice": asm(_REPLACE % ("{field}", "b32", "{value}"), _REPLACES, "tensormap.replace"),
    "tensormap_cp_fence_proxy_row": asm(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned [$0], [$1], 128;",
        Effect(Kind.READ, "shared", convergent=True),
        "tensormap.fence",
    ),
    "fence_proxy_tensormap_acquire_row": asm(
        "fence.proxy.tensormap::generic.acquire.{scope} [$0], 128;", _MAP_FENCE, "tensormap.fence"
    ),
    "fence_proxy_tensormap_release_row": asm(
        "fence.proxy.tensormap::generic.release.{scope};", _MAP_FENCE, "tensormap.fence"
    ),
}

# Tensor copies (TMA): {rank} dimensions, as many coordinates, the innermost first. PTX ISA, "Tensor Copies".
_TENSOR_LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_TENSOR_STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
_TENSOR_GATHER = "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes"
_TENSOR_SCATTER = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
_TENSOR_REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group"

TENSOR_COPIES: dict[str, Row] = {
    "tensor_load": asm(f"{_TENSOR_LOAD} [$0], [$1, {{$3*}}], [$2];", _TENSOR_IN, "tma"),
    "tensor_load_hint": asm(f"{_TENSOR_LOAD}.L2::cache_hint [$0], [$1, {{$4*}}], [$2], $3;", _TENSOR_IN, "tma"),
    "tensor_load_multicast": asm(
        f"{_TENSOR_LOAD}.multicast::cluster [$0], [$1, {{$4*}}], [$2], $3;", _TENSOR_MULTICAST, "tma.multicast"
    ),
    "tensor_load_multicast_hint": asm(
        f"{_TENSOR_LOAD}.multicast::cluster.L2::cache_hint [$0], [$1, {{$5*}}], [$2], $3, $4;",
        _TENSOR_MULTICAST,
        "tma.multicast",
    ),
    # the mbarrier may be in the other CTA of the pair
    "tensor_load_pair": asm(f"{_TENSOR_LOAD}.cta_group::2 [$0], [$1, {{$3*}}], [$2];", _TENSOR_IN, "tma.cta_group"),
    "tensor_load_pair_hint": asm(
        f"{_TENSOR_LOAD}.cta_group::2.L2::cache_hint [$0], [$1, {{$4*}}], [$2], $3;",
        _TENSOR_IN,
        "tma.cta_group",
    ),
    # counted in each pair on the mbarrier of the even or of the odd CTA, as the one that is given
    "tensor_load_pair_multicast": asm(
        f"{_TENSOR_LOAD}.multicast::cluster.cta_group::2 [$0], [$1, {{$4*}}], [$2], $3;",
        _TENSOR_MULTICAST,
        "tma.cta_group",
    ),
    "tensor_load_pair_multicast_hint": asm(
        f"{_TENSOR_LOAD}.multicast::cluster.cta_group::2.L2::cache_hint [$0], [$1, {{$5*}}], [$2], $3, $4;",
        _TENSOR_MULTICAST,
        "tma.cta_group",
    ),
    # four rows of a matrix: a column, then the rows
    "tensor_gather": asm(f"{_TENSOR_GATHER} [$0], [$1, {{$3*}}], [$2];", _TENSOR_IN, "tma.gather4"),
    "tensor_gather_hint": asm(
        f"{_TENSOR_GATHER}.L2::cache_hint [$0], [$1, {{$4*}}], [$2], $3;", _TENSOR_IN, "tma.gather4"
    ),
    "tensor_scatter": asm(f"{_TENSOR_SCATTER} [$0, {{$2*}}], [$1];", _TENSOR_OUT, "tma.gather4"),
    "tensor_scatter_hint": asm(
        f"{_TENSOR_SCATTER}.L2::cache_hint [$0, {{$3*}}], [$1], $2;", _TENSOR_OUT, "tma.gather4"
    ),
    "tensor_store": asm(f"{_TENSOR_STORE} [$0, {{$2*}}], [$1];", _TENSOR_OUT, "tma"),
    "tensor_store_hint": asm(f"{_TENSOR_STORE}.L2::cache_hint [$0, {{$3*}}], [$1], $2;", _TENSOR_OUT, "tma"),
    "tensor_reduce": asm(f"{_TENSOR_REDUCE} [$0, {{$2*}}], [$1];", _TENSOR_OUT, "tma"),
    "tensor_reduce_hint": asm(f"{_TENSOR_REDUCE}.L2::cache_hint [$0, {{$3*}}], [$1], $2;", _TENSOR_OUT, "tma"),
    "tensor_prefetch": asm(
        "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.tile [$0, {$1*}];", Effect(Kind.READ, "global"), "tma"
    ),
    "tensormap_prefetch": asm("prefetch.tensormap [$0];", Effect(Kind.READ), "tma"),
}
