"""A GEMM of tcgen05 in PTX: D = A · B transposed, warp-specialised, of any kind, by one CTA or a pair.

Warp 4 loads tiles by TMA (and scale factors by bulk copies) into a ring of stages, warp 5 copies scale factors to
tensor memory and multiplies, warps 0 to 3 store the accumulator. In a pair, warp 6 of the odd CTA tells the even one
that its half of a stage is full; the even CTA's warp 5 multiplies for both.

A stage is 128 bytes of K, that is four products. Rows of A and B are contiguous along K. Scale factors come in tiles of
128 rows by 4 factors, 512 bytes each, as ``.32x128b.warpx4`` takes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tcgen05_packing import pack_instruction

from ptxdsl.record import dataclass

THREADS = 224
_VECTOR_OF_KIND = {"mxf8f6f4": 1, "mxf4": 2, "mxf4nvf4": 4}


@dataclass(frozen=True)
class Gemm:
    """One tile of D, m x n (of both CTAs of a pair), of matrices whose K a launch gives. a_code, b_code: the types'."""

    kind: str
    m: int
    n: int
    k: int  # of one product
    a_code: int
    b_code: int
    pair: bool = False
    stages: int = 2
    scale_type: int = 1  # 1: ue8m0, 0: ue4m3

    @property
    def ctas(self) -> int:
        return 2 if self.pair else 1

    @property
    def a_rows(self) -> int:
        return self.m // self.ctas

    @property
    def b_rows(self) -> int:
        return self.n // self.ctas

    @property
    def stage_k(self) -> int:
        return 4 * self.k

    @property
    def vector(self) -> int:
        return _VECTOR_OF_KIND.get(self.kind, 0)

    @property
    def scale_tiles(self) -> int:
        """Tiles along K that the factors of 128 rows have in a stage: four products, four factors a tile."""
        return self.vector

    @property
    def scale_bytes(self) -> int:
        """Of A and of B in a stage; each CTA has the factors of all of B."""
        return 512 * self.scale_tiles * (self.a_rows // 128 + self.n // 128) if self.vector else 0

    @property
    def stage_bytes(self) -> int:
        return 128 * (self.a_rows + self.b_rows) + -(-self.scale_bytes // 1024) * 1024

    @property
    def shared_bytes(self) -> int:
        return 1024 + self.stages * self.stage_bytes

    @property
    def columns(self) -> int:
        if self.vector:
            return 512
        return max(32, 1 << (self.n - 1).bit_length())

    def instruction(self, scale_id: int = 0) -> int:
        fields = {"m": self.m, "n": self.n, "a_type": self.a_code, "b_type": self.b_code}
        if self.vector:
            fields |= {"scale_type": self.scale_type, "scale_a_id": scale_id, "scale_b_id": scale_id}
        else:
            fields["d_type"] = 2 if self.kind == "i8" else 1
        return pack_instruction(self.kind, **fields)


# Shared memory: barriers in the first 1024 bytes, then the stages: A, B, scale factors of A, of B.
FULL, EMPTY, PEER, DONE, SLOT = 0, 64, 128, 192, 200


def ptx(g: Gemm) -> str:
    group = f"cta_group::{g.ctas}"
    a_bytes, b_bytes = 128 * g.a_rows, 128 * g.b_rows
    sf_at = a_bytes + b_bytes
    sfb_at = sf_at + 512 * g.scale_tiles * (g.a_rows // 128)
    scale_params = ",\n    .param .u64 scales_a, .param .u64 scales_b" if g.vector else ""
    return f"""\
.version 8.8
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 smem[];

// {g.kind}, {g.m} x {g.n}, {"a pair of CTAs" if g.pair else "one CTA"}
.visible .entry gemm(
    .param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128], .param .u64 d,
    .param .u32 tiles{scale_params})
.reqntid {THREADS}, 1, 1
{".reqnctapercluster 2, 1, 1" if g.pair else ""}
{{
    .reg .pred %p<8>;
    .reg .b16 %h<2>;
    .reg .b32 %thread, %warp, %lane, %rank, %smem, %slot, %tmem, %tiles, %tile, %stage, %phase, %at, %bar, %r<64>;
    .reg .b32 %acc<32>;
    .reg .b64 %a, %b, %d, %sa, %sb, %da, %db, %ds, %x<16>;

    mov.u32 %thread, %tid.x;
    shr.u32 %warp, %thread, 5;
    and.b32 %lane, %thread, 31;
    mov.u32 %rank, %cluster_ctarank;
    mov.u32 %smem, smem;
    ld.param.u32 %tiles, [tiles];

    // One thread initialises the barriers; warp 4 allocates.
    setp.ne.u32 %p0, %thread, 0;
    @%p0 bra INITIALISED;
{"".join(_init(g))}
    fence.mbarrier_init.release.cluster;
INITIALISED:
    setp.ne.u32 %p0, %warp, 4;
    @%p0 bra ALLOCATED;
    tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [%smem+{SLOT}], {g.columns};
    tcgen05.relinquish_alloc_permit.{group}.sync.aligned;
ALLOCATED:
    tcgen05.fence::before_thread_sync;
    {_sync(g)}
    tcgen05.fence::after_thread_sync;
    ld.shared.b32 %tmem, [%smem+{SLOT}];

    setp.eq.u32 %p0, %warp, 4;
    @%p0 bra LOAD;
    setp.eq.u32 %p0, %warp, 5;
    @%p0 bra MULTIPLY;
    setp.eq.u32 %p0, %warp, 6;
    @%p0 bra FORWARD;
    bra STORE;

LOAD:
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra JOIN;
    mov.b64 %a, map_a;
    mov.b64 %b, map_b;
    cvta.param.u64 %a, %a;
    cvta.param.u64 %b, %b;
{_scale_pointers(g)}
    mul.lo.u32 %r1, %rank, {g.a_rows};     // this CTA's first row of A and of B
    mul.lo.u32 %r2, %rank, {g.b_rows};
    mov.b32 %tile, 0;
    mov.b32 %stage, 0;
    mov.b32 %phase, 1;
LOAD_LOOP:
    mad.lo.u32 %at, %stage, {g.stage_bytes}, %smem;
    add.u32 %at, %at, 1024;
    mad.lo.u32 %bar, %stage, 8, %smem;
LOAD_WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar+{EMPTY}], %phase;
    @!%p2 bra LOAD_WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar+{FULL}], {a_bytes + b_bytes + g.scale_bytes};
    shl.b32 %r3, %tile, 7;                 // byte of K
    add.u32 %r4, %bar, {FULL};
    add.u32 %r5, %at, {a_bytes};
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%at], [%a, {{%r3, %r1}}], [%r4];
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r5], [%b, {{%r3, %r2}}], [%r4];
{_load_scales(g, sf_at, sfb_at)}
{_next(g, "LOAD")}
    bra JOIN;

FORWARD:
    {"" if g.pair else "bra JOIN;"}
    setp.eq.u32 %p1, %rank, 0;
    @%p1 bra JOIN;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra JOIN;
    mov.b32 %tile, 0;
    mov.b32 %stage, 0;
    mov.b32 %phase, 0;
FORWARD_LOOP:
    mad.lo.u32 %bar, %stage, 8, %smem;
FORWARD_WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar+{FULL}], %phase;
    @!%p2 bra FORWARD_WAIT;
    add.u32 %r1, %bar, {PEER};
    mapa.shared::cluster.u32 %r1, %r1, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
{_next(g, "FORWARD")}
    bra JOIN;

MULTIPLY:
    setp.ne.u32 %p1, %rank, 0;
    @%p1 bra JOIN;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra JOIN;
    mov.b32 %tile, 0;
    mov.b32 %stage, 0;
    mov.b32 %phase, 0;
    setp.ne.b32 %p3, %tile, %tile;         // false: the first product does not add D
    setp.eq.b32 %p4, %tile, %tile;
MULTIPLY_LOOP:
    mad.lo.u32 %at, %stage, {g.stage_bytes}, %smem;
    add.u32 %at, %at, 1024;
    mad.lo.u32 %bar, %stage, 8, %smem;
MULTIPLY_WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar+{FULL}], %phase;
    @!%p2 bra MULTIPLY_WAIT;
{_wait_peer(g)}
    tcgen05.fence::after_thread_sync;
    // Descriptors: 128-byte swizzling, 8 rows of 128 bytes after one another; version 1.
    shr.u32 %r1, %at, 4;
    and.b32 %r1, %r1, 0x3fff;
    cvt.u64.u32 %da, %r1;
    or.b64 %da, %da, {1 << 16 | 64 << 32 | 1 << 46 | 2 << 61};
    add.u64 %db, %da, {a_bytes >> 4};
{_copy_scales(g, sf_at, sfb_at, group)}
{_products(g, group)}
    add.u32 %r2, %bar, {EMPTY};
    {_commit(g, group, "%r2")}
{_next(g, "MULTIPLY")}
    add.u32 %r2, %smem, {DONE};
    {_commit(g, group, "%r2")}
    bra JOIN;

STORE:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%smem+{DONE}], 0;
    @!%p2 bra STORE;
    tcgen05.fence::after_thread_sync;
{_store(g)}
    tcgen05.fence::before_thread_sync;

JOIN:
    bar.warp.sync 0xffffffff;
    {_sync(g)}
    setp.ne.u32 %p0, %warp, 4;
    @%p0 bra END;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.{group}.sync.aligned.b32 %tmem, {g.columns};
END:
    ret;
}}
"""


def _sync(g: Gemm) -> str:
    return "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" if g.pair else "bar.sync 0;"


def _init(g: Gemm) -> list[str]:
    counts = [(at + 8 * stage, 1) for at in (FULL, EMPTY, PEER) for stage in range(g.stages)] + [(DONE, 1)]
    return [f"    mbarrier.init.shared::cta.b64 [%smem+{at}], {count};\n" for at, count in counts]


def _next(g: Gemm, label: str) -> str:
    """The next tile, and its stage."""
    return f"""\
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p5, %stage, {g.stages};
    @%p5 xor.b32 %phase, %phase, 1;
    @%p5 mov.b32 %stage, 0;
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p5, %tile, %tiles;
    @%p5 bra {label}_LOOP;"""


def _scale_pointers(g: Gemm) -> str:
    if not g.vector:
        return ""
    return f"""\
    ld.param.u64 %sa, [scales_a];
    ld.param.u64 %sb, [scales_b];
    mul.wide.u32 %x1, %rank, %tiles;       // of A this CTA has its own rows
    mul.lo.u64 %x1, %x1, {512 * g.scale_tiles * (g.a_rows // 128)};
    add.u64 %sa, %sa, %x1;"""


def _load_scales(g: Gemm, sf_at: int, sfb_at: int) -> str:
    """The factors of a stage: those of all rows of A, then of B, lie together in global memory, stage after stage."""
    if not g.vector:
        return ""
    sizes = 512 * g.scale_tiles * (g.a_rows // 128), 512 * g.scale_tiles * (g.n // 128)
    copy = "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
    return f"""\
    add.u32 %r6, %at, {sf_at};
    {copy} [%r6], [%sa], {sizes[0]}, [%r4];
    add.u32 %r7, %at, {sfb_at};
    {copy} [%r7], [%sb], {sizes[1]}, [%r4];
    add.u64 %sa, %sa, {sizes[0]};
    add.u64 %sb, %sb, {sizes[1]};"""


def _wait_peer(g: Gemm) -> str:
    if not g.pair:
        return ""
    return f"""\
MULTIPLY_PEER:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%bar+{PEER}], %phase;
    @!%p2 bra MULTIPLY_PEER;"""


# Columns of tensor memory: D from 0 on, factors of A from 256 on, of B from 320 on.
SCALE_A, SCALE_B = 256, 320


def _copy_scales(g: Gemm, sf_at: int, sfb_at: int, group: str) -> str:
    """A tile of 128 rows and 4 factors goes to four columns; the tiles of one step along K lie side by side."""
    if not g.vector:
        return ""
    lines = [
        f"    add.u32 %r1, %at, {sf_at};",
        "    shr.u32 %r1, %r1, 4;",
        "    and.b32 %r1, %r1, 0x3fff;",
        "    cvt.u64.u32 %ds, %r1;",
        f"    or.b64 %ds, %ds, {1 << 16 | 8 << 32 | 1 << 46};",
    ]
    number = 0
    for base, blocks in ((SCALE_A, g.a_rows // 128), (SCALE_B, g.n // 128)):
        for step in range(g.scale_tiles):
            for block in range(blocks):
                lines += [
                    f"    add.u32 %r2, %tmem, {base + 4 * (step * blocks + block)};",
                    f"    add.u64 %x1, %ds, {32 * number};",
                    f"    tcgen05.cp.{group}.32x128b.warpx4 [%r2], %x1;",
                ]
                number += 1
    return "\n".join(lines)


def _products(g: Gemm, group: str) -> str:
    lines = []
    for step in range(4):
        scales = qualifiers = ""
        if g.vector:
            # A tile has four factors a row: of four products with one each, of two with two, of one with four.
            tile, id = step * g.vector // 4, step * g.vector % 4
            scales = "[%r3], [%r4], "
            qualifiers = f".block_scale.scale_vec::{g.vector}X"
            lines += [
                f"    add.u32 %r3, %tmem, {SCALE_A + 4 * tile * (g.a_rows // 128)};",
                f"    add.u32 %r4, %tmem, {SCALE_B + 4 * tile * (g.n // 128)};",
            ]
        else:
            id = 0
        lines += [
            f"    mov.b32 %r5, {g.instruction(id):#x};",
            f"    tcgen05.mma.{group}.kind::{g.kind}{qualifiers} [%tmem], %da, %db, %r5, {scales}%p3;",
            "    add.u64 %da, %da, 2;",
            "    add.u64 %db, %db, 2;",
        ]
        if step == 0:
            lines.append("    or.pred %p3, %p4, %p4;")
    return "\n".join(lines)


def _commit(g: Gemm, group: str, bar: str) -> str:
    if not g.pair:
        return f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.b64 [{bar}];"
    return (
        "mov.b16 %h1, 3;\n    "
        f"tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [{bar}], %h1;"
    )


def _store(g: Gemm) -> str:
    """Each warp its 32 lanes, 32 columns at a time. In layout B the upper two warps have the upper half of N."""
    halves = g.pair and g.m == 128
    width = g.n // 2 if halves else g.n
    lines = [
        "    ld.param.u64 %d, [d];",
        "    shl.b32 %r1, %warp, 21;            // lane 32 * warp",
        "    add.u32 %r1, %r1, %tmem;",
        f"    and.b32 %r2, %warp, {1 if halves else 3};",
        "    shl.b32 %r2, %r2, 5;",
        "    add.u32 %r2, %r2, %lane;           // row of this CTA",
        f"    mad.lo.u32 %r2, %rank, {g.a_rows}, %r2;",
        f"    mad.wide.u32 %d, %r2, {4 * g.n}, %d;",
    ]
    if halves:
        lines += ["    shr.u32 %r3, %warp, 1;", f"    mad.wide.u32 %d, %r3, {4 * width}, %d;"]
    names = ", ".join(f"%acc{i}" for i in range(32))
    for column in range(0, width, 32):
        lines += [
            f"    tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{names}}}, [%r1+{column}];",
            "    tcgen05.wait::ld.sync.aligned;",
        ]
        for i in range(0, 32, 4):
            part = ", ".join(f"%acc{i + j}" for j in range(4))
            lines.append(f"    st.global.v4.b32 [%d+{4 * (column + i)}], {{{part}}};")
    return "\n".join(lines)


def scale_blocks(codes: Any, tiles: int, per_tile: int) -> Any:
    """(rows, factors) codes in the order in which stages take them: stage, step along K, block of 128 rows, 512 bytes.

    per_tile: steps (tiles of four factors) in a stage.
    """
    rows = codes.shape[0]
    blocks = codes.reshape(rows // 128, 4, 32, tiles, per_tile, 4)
    return np.ascontiguousarray(blocks.transpose(3, 4, 0, 2, 1, 5)).reshape(-1)
