"""The loop of the warp that starts products with scale factors, written by hand in PTX: what its machine code comes to.

    python benchmarks/gemm_blackwell_by_hand.py

With tiles of 256 columns, a stage has a wait, a ``tcgen05.cp`` for each 128 rows and four factors unless another warp
does the copies (as in samples/10_gemm_blackwell.pdsl), four ``tcgen05.mma``, a commit. Each copy and product has
descriptors of its own, each in two uniform registers. Those that are kept in registers cost nothing in the loop, the
others an addition each; more than there are registers for cost more again. Printed: instructions of SASS for a stage,
without and with the copies, where each is added, where those of a stage's first places are kept (as the sample has it),
and the least of all numbers that may be kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from count import loop_of  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.backend.assemble import assemble, disassemble  # noqa: E402
from ptxdsl.diagnostics import CompileError  # noqa: E402
from ptxdsl.options import Options  # noqa: E402

# kind, elements with a factor together, words of four factors in 128 bytes of K
FORMS = {"mxfp8": ("mxf8f6f4", 32, 1), "mxfp4": ("mxf4", 32, 2), "nvfp4": ("mxf4nvf4", 16, 4)}
A, B, FACTORS_A, FACTORS_B = 1, 2, 3, 4  # registers of the descriptors of the first of each
_HEAD = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u32 turns, .param .u32 tiles)
{
.reg .pred %p<9>; .reg .b16 %h<3>; .reg .b32 %r<100>; .reg .b64 %d<200>;
.shared .align 8 .b8 bars[128];
elect.sync _|%p1, -1; setp.eq.u32 %p3, 0, 0;
mov.u32 %r1, bars; ld.param.u32 %r2, [turns]; ld.param.u32 %r3, [tiles]; mov.u32 %r4, 0; mov.b16 %h1, 3;
ld.shared.u64 %d1, [bars+64]; ld.shared.u64 %d2, [bars+72]; ld.shared.u64 %d3, [bars+80]; ld.shared.u64 %d4, [bars+88];
ld.shared.u32 %r5, [bars+96]; ld.shared.u32 %r6, [bars+100];
mov.u32 %r30, 146800640; mov.u32 %r31, 683671568; mov.u32 %r32, 1220542496; mov.u32 %r33, 1757413424;
"""
_TAIL = """xor.b32 %r8, %r8, 1; add.s32 %r7, %r7, 1; setp.ne.u32 %p4, %r7, %r2; @%p4 bra TURN;
add.s32 %r4, %r4, 1; setp.ne.u32 %p4, %r4, %r3; @%p4 bra TILE;
ret;
}
"""


def loop(form: str, ctas: int, stages: int, kept: int, firsts: bool, copies: bool) -> str:
    """kept: descriptors that stay in registers. firsts: those of each stage's first places, before others.

    copies: in the same loop. Without, each stage has factors of its own in tensor memory.
    """
    kind, block, words = FORMS[form]
    group = f"cta_group::{ctas}"
    before: list[str] = []
    body: list[str] = []
    places: list[tuple[int, int, int, int]] = []
    for stage in range(stages):
        if copies:
            places += [(FACTORS_A, stage, i, (stage * words + i) * 32) for i in range(words)]
            places += [(FACTORS_B, stage, i, (stage * 2 * words + i) * 32) for i in range(2 * words)]
        places += [(what, stage, i, stage * size + 2 * i) for what, size in ((A, 1024), (B, 2048)) for i in range(4)]
    order = sorted(places, key=lambda place: place[2] > 0) if firsts else places
    names = {place[:3]: f"%d{number}" for number, place in enumerate(order, 10)}
    offsets = {place[:3]: place[3] for place in places}
    resident = {place[:3] for place in order[:kept]}

    def made(place: tuple[int, int, int]) -> str:
        (before if place in resident else body).append(f"add.u64 {names[place]}, %d{place[0]}, {offsets[place]};")
        return names[place]

    for word in range(words if copies else words * stages):
        before.append(f"add.u32 %r{40 + word}, %r5, {4 * word}; add.u32 %r{60 + word}, %r6, {8 * word};")
    for stage in range(stages):
        body.append(
            f"{{.reg .pred q; W: mbarrier.try_wait.parity.shared::cta.b64 q, [%r1+{8 * (stages + stage)}], %r8; "
            "@!q bra W;}\ntcgen05.fence::after_thread_sync;"
        )
        for i in range(3 * words if copies else 0):
            what, column, nth = (FACTORS_A, f"%r{40 + i}", i) if i < words else (FACTORS_B, "", i - words)
            column = column or f"%r{60 + nth % words}" + ("+4" if nth >= words else "")
            source = made((what, stage, nth))
            body.append(f"@%p1 tcgen05.cp.{group}.32x128b.warpx4 [{column}], {source};")
        for i in range(4):
            a, b = made((A, stage, i)), made((B, stage, i))
            word, selects = i * words // 4 + (0 if copies else stage * words), {1: i, 2: i % 2, 4: 0}[words]
            body.append(
                f"@%p1 tcgen05.mma.{group}.kind::{kind}.block_scale.block{block} [%r9], {a}, {b}, %r3{selects}, "
                f"[%r{40 + word}], [%r{60 + word}], {'%p3' if stage or i else '%p2'};"
            )
        told, mask = (".multicast::cluster", ", %h1") if ctas == 2 else ("", "")
        body.append(
            f"@%p1 tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster{told}.b64 [%r1+{8 * stage}]{mask};"
        )
    start = "TILE:\nmov.u32 %r7, 0; mov.u32 %r8, 0;\nTURN:\nsetp.ne.u32 %p2, %r7, 0;"
    address = "ld.shared.u32 %r9, [bars+104];"
    return _HEAD + "\n".join([address, *before, start, *body]) + "\n" + _TAIL


def instructions(form: str, ctas: int, stages: int, kept: int, firsts: bool, copies: bool) -> float:
    """Of SASS, for a stage; NOPs excluded. Infinite where ptxas makes no such loop for want of uniform registers."""
    options = Options(arch="sm_100a")
    try:
        assembled = assemble(loop(form, ctas, stages, kept, firsts, copies), options, ())
    except CompileError:
        return float("inf")
    length = loop_of(disassemble(assembled.cubin), "MMA", 4 * stages)
    return float("inf") if length is None else length / stages


def main() -> None:
    print(f"{machine_line()}; instructions of SASS for 128 bytes of K, by hand")
    rows = []
    for form in FORMS:
        for ctas in (1, 2):
            stages = 3 if ctas == 1 else 4
            cells = []
            for copies in (False, True):
                firsts = (4 if copies else 2) * stages
                cells += [instructions(form, ctas, stages, kept, True, copies) for kept in (0, firsts)]
                cells.append(min(instructions(form, ctas, stages, kept, False, copies) for kept in range(0, 32, 2)))
            rows.append([form, "pair" if ctas == 2 else "block", *(f"{cell:.4g}" for cell in cells)])
    columns = ["all added", "first places kept", "least"]
    print_table(["type", "form", *columns, *(f"with copies, {column}" for column in columns)], rows)


if __name__ == "__main__":
    main()
