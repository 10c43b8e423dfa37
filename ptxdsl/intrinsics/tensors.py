"""Tensor cores: of a warpgroup, and of the fifth generation; matrices from and to shared memory."""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.intrinsics.row import Row, asm

_WGMMA = Effect(Kind.ASYNC_MMA, "shared", proxy="async", completes_on="wgmma-group", convergent=True)
_WGMMA_WAIT = Effect(Kind.WAIT_GROUP, proxy="async", completes_on="wgmma-group", convergent=True)
_MMA_SYNC = Effect(Kind.WARP_SYNC, convergent=True)
_LDMATRIX = Effect(Kind.READ, "shared", convergent=True)
_STMATRIX = Effect(Kind.WRITE, "shared", convergent=True)
_TENSOR_MEMORY = Effect(Kind.WRITE, "tensor", convergent=True)
_TCGEN05_MMA = Effect(Kind.ASYNC_MMA, "tensor", proxy="async", completes_on="mbarrier")
_TCGEN05_COPY = Effect(Kind.ASYNC_COPY, "tensor", proxy="async", completes_on="mbarrier")
_TCGEN05_LOAD = Effect(Kind.READ, "tensor", completes_on="tcgen05-wait-ld", convergent=True)
_TCGEN05_STORE = Effect(Kind.WRITE, "tensor", completes_on="tcgen05-wait-st", convergent=True)
_TCGEN05_LOADED = Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-ld", convergent=True)
_TCGEN05_STORED = Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-st", convergent=True)
_TCGEN05_FENCE = Effect(Kind.FENCE, "tensor", proxy="async")
_MMA_COMMIT = Effect(Kind.COMMIT, "shared", proxy="async", scope="cluster", barrier=0, completes_on="mbarrier")

# Matrix products of a warp: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". {types} are those of D, A, B
# and C, with what stands before them.
_MMA = "mma.sync.aligned.{shape}.row.col{types} {$r*}, {$0, $1, $2, $3}, {$4, $5}, {$6*};"

WARP_PRODUCTS: dict[str, Row] = {
    "mma_row": asm(_MMA, _MMA_SYNC, "mma.m16n8k16"),
    "mma_float8_row": asm(_MMA, _MMA_SYNC, "mma.float8"),
    "mma_short_row": asm(
        "mma.sync.aligned.{shape}.row.col{types} {$r*}, {$0, $1}, {$2}, {$3*};",
        _MMA_SYNC,
        "mma.m16n8k16",
    ),
    "mma_double_row": asm(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {$r*}, {$0}, {$1}, {$2*};",
        _MMA_SYNC,
        "mma.m16n8k16",
    ),
}

# Matrix products of a warpgroup: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
# {types} are those of D, A and B, with what follows them; {tail} is the signs and majornesses after scale-d.
_WGMMA_OF = (
    "{.reg .pred p; setp.ne.b32 p, $%d, 0; wgmma.mma_async%s.sync.aligned.m64n{n}k{k}.{types} {$r*}, %s, p{tail};}"
)
_FRAGMENT = "{$0, $1, $2, $3}"

WARPGROUP: dict[str, Row] = {
    "wgmma_shared": asm(_WGMMA_OF % (2, "", "$0, $1"), _WGMMA, "wgmma", tied=3),
    "wgmma_registers": asm(_WGMMA_OF % (5, "", f"{_FRAGMENT}, $4"), _WGMMA, "wgmma", tied=6),
    # signed by unsigned bytes, which came later
    "wgmma_mixed_shared": asm(_WGMMA_OF % (2, "", "$0, $1"), _WGMMA, "wgmma.mixed", tied=3),
    "wgmma_mixed_registers": asm(_WGMMA_OF % (5, "", f"{_FRAGMENT}, $4"), _WGMMA, "wgmma.mixed", tied=6),
    "wgmma_sparse_shared": asm(_WGMMA_OF % (3, ".sp", "$0, $1, $2, {selector}"), _WGMMA, "wgmma.sparse", tied=4),
    "wgmma_sparse_registers": asm(
        _WGMMA_OF % (6, ".sp", f"{_FRAGMENT}, $4, $5, {{selector}}"), _WGMMA, "wgmma.sparse", tied=7
    ),
    "wgmma_fence_aligned": asm(
        "wgmma.fence.sync.aligned;", Effect(Kind.FENCE, proxy="async", convergent=True), "wgmma"
    ),
    "wgmma_commit_group_sync": asm(
        "wgmma.commit_group.sync.aligned;",
        Effect(Kind.COMMIT, proxy="async", completes_on="wgmma-group", convergent=True),
        "wgmma",
    ),
    "wgmma_wait_group": asm("wgmma.wait_group.sync.aligned {n};", _WGMMA_WAIT, "wgmma"),
    # the same, after which the registers are what the products made of them
    "wgmma_wait_group_of": asm("wgmma.wait_group.sync.aligned {n};", _WGMMA_WAIT, "wgmma", tied=0),
    "stmatrix_x1": asm("stmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 [$0], {$1};", _STMATRIX, "stmatrix"),
    "stmatrix_x2": asm("stmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 [$0], {$1, $2};", _STMATRIX, "stmatrix"),
    "stmatrix_x4": asm(
        "stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [$0], {$1, $2, $3, $4};", _STMATRIX, "stmatrix"
    ),
    "ldmatrix_x1": asm("ldmatrix.sync.aligned.m8n8.x1{trans}.shared.b16 {$r0}, [$0];", _LDMATRIX, "ldmatrix"),
    "ldmatrix_x2": asm("ldmatrix.sync.aligned.m8n8.x2{trans}.shared.b16 {$r0, $r1}, [$0];", _LDMATRIX, "ldmatrix"),
    "ldmatrix_x4": asm(
        "ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {$r0, $r1, $r2, $r3}, [$0];", _LDMATRIX, "ldmatrix"
    ),
    "ldmatrix_bytes_x1": asm(
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {$r0, $r1}, [$0];", _LDMATRIX, "ldmatrix.b8"
    ),
    "ldmatrix_bytes_x2": asm(
        "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8 {$r0, $r1, $r2, $r3}, [$0];", _LDMATRIX, "ldmatrix.b8"
    ),
}

# The fifth generation of tensor cores: PTX ISA, "TensorCore 5th Generation Family Instructions". Addresses of tensor
# memory and descriptors are integers. {shape} and what else follows a name is written with its dots.
# The lane whose $%d is not 0 starts the work: of a warp that comes together, so that all addresses are uniform.
_BY_ELECTED = "{.reg .pred e; setp.ne.b32 e, $%d, 0; @e %s;}"
_COMMIT = "tcgen05.commit.cta_group::{cta_group}.mbarrier::arrive::one.shared::cluster"


def _product(a: str, *, sparse: bool, stationary: bool, scaled: bool, last: str) -> str:
    """tcgen05.mma of D, A, B, the instruction's descriptor, whether D is added, and which lane starts it.

    Behind B the address of what says which elements of a sparse A are stored, behind the instruction's descriptor those
    of the scale factors. At the end may stand the masks of lanes that D keeps, where B is stationary the mask of its
    columns that count as zero. {form}: what is done with the collector's buffer, .ashift.
    """
    descriptor = 3 + sparse
    operands = ["[$0]", a, "$2", *["[$3]"] * sparse, f"${descriptor}"]
    operands += [f"[${descriptor + 1}]", f"[${descriptor + 2}]"] * scaled
    adds = descriptor + 1 + 2 * scaled
    rest = adds + 2
    lanes = "" if stationary or scaled else f", {{${rest}*}}"
    zeros = f", ${rest}*" if stationary else ""
    opcode = f"tcgen05.mma{'.ws' * stationary}{'.sp' * sparse}.cta_group::{{cta_group}}.kind::{{kind}}"
    opcode += ".block_scale.block{block}" * scaled
    return (
        f"{{.reg .pred p, e; setp.ne.b32 p, ${adds}, 0; setp.ne.b32 e, ${adds + 1}, 0; "
        f"@e {opcode}{{form}} {', '.join(operands)}{lanes}, p{zeros}{last};}}"
    )


# What a form of a product needs, and what stands at its end: D is divided by 2 to the {power}.
_FORMS = {
    "": ("tcgen05", ""),
    "_bytes": ("tcgen05.bytes", ""),
    "_divided": ("tcgen05.divided", ", {power}"),
    "_scaled": ("tcgen05.scaled", ""),  # one factor for {block} elements along K
    "_scaled_k96": ("tcgen05.k96", ""),  # the same, whose instruction descriptor says that K is 96
    "_scaled_packed": ("tcgen05.packed", ""),  # of two e2m1 in a byte, A sparse
}
_FORMS_OF = {
    "": ("", "_bytes", "_divided", "_scaled", "_scaled_k96"),
    "_sparse": ("", "_bytes", "_divided", "_scaled", "_scaled_packed"),
    "_stationary": ("", "_bytes"),
    "_stationary_sparse": ("", "_bytes"),
}
_PRODUCTS = {
    f"tcgen05_mma_{place}{variant}{form}": asm(
        _product(
            a,
            sparse="_sparse" in variant,
            stationary="_stationary" in variant,
            scaled="_scaled" in form,
            last=_FORMS[form][1],
        ),
        _TCGEN05_MMA,
        _FORMS[form][0],
    )
    for place, a in (("shared", "$1"), ("tensor", "[$1]"))
    for variant, forms in _FORMS_OF.items()
    for form in forms
}

TENSOR_CORES: dict[str, Row] = {
    "tcgen05_alloc_row": asm(
        "tcgen05.alloc.cta_group::{cta_group}.sync.aligned.shared::cta.b32 [$0], {columns};",
        Effect(Kind.WRITE, "shared", convergent=True),
        "tcgen05",
    ),
    "tcgen05_relinquish_row": asm(
        "tcgen05.relinquish_alloc_permit.cta_group::{cta_group}.sync.aligned;", _TENSOR_MEMORY, "tcgen05"
    ),
    "tcgen05_dealloc_row": asm(
        "tcgen05.dealloc.cta_group::{cta_group}.sync.aligned.b32 $0, {columns};", _TENSOR_MEMORY, "tcgen05"
    ),
    **_PRODUCTS,
    # Descriptors of matrices: an address and constant fields, and places a constant further on. LLVM and ptxas must
    # not see that the upper half is constant: they would put each place together of two halves. In a loop a place is
    # then one addition; made before it, it would take two uniform registers, of which there are few.
    "tcgen05_descriptor": asm("add.s64 $r0, $0, {fields};", PURE, "tcgen05"),
    "tcgen05_descriptor_at": asm("add.s64 $r0, $0, {offset};", Effect(convergent=True), "tcgen05"),
    "tcgen05_copy_row": asm(
        _BY_ELECTED % (2, "tcgen05.cp.cta_group::{cta_group}{shape} [$0], $1"), _TCGEN05_COPY, "tcgen05"
    ),
    "tcgen05_shift_row": asm(
        _BY_ELECTED % (1, "tcgen05.shift.cta_group::{cta_group}.down [$0]"), _TCGEN05_COPY, "tcgen05.shift"
    ),
    "tcgen05_load_row": asm("tcgen05.ld.sync.aligned{shape}.b32 {$r*}, [$0]{split};", _TCGEN05_LOAD, "tcgen05"),
    # the least or the greatest of a lane's columns, and the columns
    "tcgen05_load_reduced_row": asm(
        "tcgen05.ld.red.sync.aligned{shape}{reduction} {$r1*}, $r0, [$0]{split};", _TCGEN05_LOAD, "tcgen05.ld.red"
    ),
    "tcgen05_store_row": asm("tcgen05.st.sync.aligned{shape}.b32 [$0]{split}, {$1*};", _TCGEN05_STORE, "tcgen05"),
    "tcgen05_load_wait_row": asm("tcgen05.wait::ld.sync.aligned;", _TCGEN05_LOADED, "tcgen05"),
    # the same, after which the registers are what the loads made of them
    "tcgen05_load_wait_of": asm("tcgen05.wait::ld.sync.aligned;", _TCGEN05_LOADED, "tcgen05", tied=0),
    "tcgen05_store_wait": asm("tcgen05.wait::st.sync.aligned;", _TCGEN05_STORED, "tcgen05"),
    "tcgen05_fence_before": asm("tcgen05.fence::before_thread_sync;", _TCGEN05_FENCE, "tcgen05"),
    "tcgen05_fence_after": asm("tcgen05.fence::after_thread_sync;", _TCGEN05_FENCE, "tcgen05"),
    "tcgen05_commit": asm(f"{_COMMIT}.b64 [$0];", _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_multicast": asm(f"{_COMMIT}.multicast::cluster.b64 [$0], $1;", _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_elected": asm(_BY_ELECTED % (1, f"{_COMMIT}.b64 [$0]"), _MMA_COMMIT, "tcgen05"),
    "tcgen05_commit_multicast_elected": asm(
        _BY_ELECTED % (2, f"{_COMMIT}.multicast::cluster.b64 [$0], $1"), _MMA_COMMIT, "tcgen05"
    ),
}
