"""What is checked must be what runs: each role's barrier operations are the same, in the same order, in TIR and in PTX.

LLVM may lay the roles' code out in any order, so the PTX is compared role by role: the straight pieces of TIR between
two joins of control flow must be found one after the other until all of the PTX is used up.
"""

import re
from pathlib import Path

import pytest
from elaborate_support import typed

from ptxdsl import tir
from ptxdsl.artifact import Compiled
from ptxdsl.driver import compile_source
from ptxdsl.effects import Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.options import Options
from ptxdsl.rings.unroll import unroll_rings
from ptxdsl.syntax.parse import read_source

DATA = Path(__file__).parents[1] / "data"
SAMPLES = Path(__file__).parents[2] / "samples"
FILES = [
    *sorted(p for p in (DATA / "oracle").glob("*.mojo") if not p.stem.startswith(("iso_base", "iso_init", "iso_step"))),
    *sorted((DATA / "examples").glob("*_clean.pdsl")),
    *sorted(p for p in SAMPLES.glob("*.pdsl") if p.stem[:2] in ("04", "05", "06", "07")),
]
IN_PTX = re.compile(r"mbarrier\.(init|try_wait|arrive(?:\.expect_tx)?)\b|(tcgen05\.commit)")
PIPE = {"pipe.wait": "try_wait", "pipe.arrive": "arrive", "pipe.commit_mma": "tcgen05.commit"}
ROW = {Kind.BAR_INIT: "init", Kind.BAR_WAIT: "try_wait", Kind.BAR_ARRIVE: "arrive", Kind.BAR_EXPECT: "arrive.expect_tx"}


def operation(op: tir.Op) -> str | None:
    if op.name in PIPE:
        return PIPE[op.name]
    row = ROWS.get(op.name)
    if row is not None and "tcgen05.commit" in row.text:
        return "tcgen05.commit"
    return None if row is None else ROW.get(row.effect.kind)


def pieces(block: tir.Block) -> list[list[str]]:
    """The runs of barrier operations that no control flow interrupts."""
    result: list[list[str]] = [[]]
    for op in block.ops:
        if op.blocks:
            for inner in op.blocks:
                result += pieces(inner)
            result.append([])
        elif (name := operation(op)) is not None:
            result[-1].append(name)
    return [piece for piece in result if piece]


def arch_of(text: str) -> str:
    found = re.search(r'get_gpu_target\["(\w+)"\]|# targets: (\w+)', text)
    return (found[1] or found[2]) if found else "sm_90a"


@pytest.mark.parametrize("ring_unroll", [True, False], ids=["ring", "counter"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_order(path: Path, ring_unroll: bool) -> None:
    text = path.read_text()
    options = Options(arch=arch_of(text), ring_unroll=ring_unroll)
    kernel = "kernel" if path.suffix == ".mojo" else None
    module = unroll_rings(typed(text, options.arch, kernel), options)
    compiled = compile_source(read_source(path, path.name), kernel=kernel, options=options)
    assert isinstance(compiled, Compiled)
    in_ptx = [m[1] or m[2] for m in IN_PTX.finditer(compiled.ptx)]
    expected = [piece for k in module.kernels for piece in pieces(k.body)]
    assert in_ptx and sorted(in_ptx) == sorted(name for piece in expected for name in piece)
    assert tiles(in_ptx, expected), f"TIR has {expected}, PTX has {in_ptx}"


def tiles(sequence: list[str], wanted: list[list[str]]) -> bool:
    """Whether a sequence is the pieces in some order, each whole."""
    counts: dict[tuple[str, ...], int] = {}
    for piece in wanted:
        counts[tuple(piece)] = counts.get(tuple(piece), 0) + 1
    dead: set[tuple[int, tuple[int, ...]]] = set()
    kinds = sorted(counts, key=len, reverse=True)

    def fits(at: int) -> bool:
        if at == len(sequence):
            return True
        state = (at, tuple(counts[k] for k in kinds))
        if state in dead:
            return False
        for kind in kinds:
            if counts[kind] and tuple(sequence[at : at + len(kind)]) == kind:
                counts[kind] -= 1
                if fits(at + len(kind)):
                    return True
                counts[kind] += 1
        dead.add(state)
        return False

    return fits(0)
