"""The Blackwell GEMM (samples/10_gemm_blackwell.pdsl) without a card: code and results for every type, block and pair,
and (CLC) where clusters take over tiles of others.

    python benchmarks/gemm_blackwell.py [--quick]

Code: registers, spills and notes of ptxas for sm_100a and sm_103a (13.5), instructions of SASS in the main loop of the
warp that starts the products, for each 128 bytes of K (a stage of the ring; NOPs excluded), and in that of the one that
copies scale factors. Results: the simulator's beside NumPy's in float64, the largest difference relative to the largest
element, over shapes with edges in all directions. Exits 1 where something spills, ptxas has a note, a result is off, or
a loop of products has more than 30 instructions for 128 bytes of K.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests" / "sim")]

from count import loop_of  # noqa: E402
from gemm_blackwell_launches import SAMPLE, SCALED, gemm, scaled  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.artifact import Compiled  # noqa: E402
from ptxdsl.backend.assemble import assemble, disassemble  # noqa: E402
from ptxdsl.driver import compile_source  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.syntax.parse import read_source  # noqa: E402

LIMIT = 30
TOLERANCE = 2e-6  # sums are rounded to float32 once for 32 bytes of K
# m, n, k in units of the smallest K that tensor maps take (16 bytes): edges everywhere, one tile, many, a flat one
SHAPES = [(136, 136, 17), (128, 128, 32), (300, 264, 9), (8, 520, 5)]


@dataclass(frozen=True)
class Case:
    kernel: str
    type: str
    ctas: int
    constants: dict[str, str]
    clc: bool = False

    @property
    def elements(self) -> int:
        """Of K in 16 bytes."""
        bits = {"bf16": 16, "f16": 16, "tf32": 32, "mxfp4": 4, "nvfp4": 4}.get(self.type, 8)
        return 128 // bits


def cases() -> list[Case]:
    names = {
        "bf16": "DType.bfloat16", "f16": "DType.float16", "tf32": "DType.float32", "e4m3": "DType.float8_e4m3fn",
        "e5m2": "DType.float8_e5m2", "s8": "DType.int8", "u8": "DType.uint8",
    }  # fmt: skip
    found = [Case("gemm", type, ctas, {"T": name}) for type, name in names.items() for ctas in (1, 2)]
    for name, (type, scale, block, _) in SCALED.items():
        constants = {
            "T": names.get(type, "DType.uint8"),
            "S": "DType.uint8" if scale == "ue8m0" else "DType.float8_e4m3fn",
            "BLOCK": str(block),
        }
        found += [Case("gemm_scaled", name, ctas, constants) for ctas in (1, 2)]
    return [*found, *(replace(case, clc=True) for case in found if case.type in ("bf16", "mxfp8", "nvfp4"))]


def code_of(case: Case, arch: str) -> tuple[str, bool]:
    """Registers, and instructions for 128 bytes of K: of products, of copies of factors."""
    stages = 4 if case.kernel == "gemm" or case.ctas == 2 else 3
    constants = {**case.constants, "CTAS": str(case.ctas), "STAGES": str(stages), "CLC": str(case.clc)}
    options = Options(arch=arch)
    compiled = compile_source(
        read_source(SAMPLE, SAMPLE.name), kernel=case.kernel, constants=constants, options=options
    )
    assert isinstance(compiled, Compiled)
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    (resources,) = assembled.resources.values()
    notes = [said.code for said in assembled.log if said.code != "W0805"]
    listing = disassemble(assembled.cubin)
    lengths = [length / stages for opcode in ("MMA", "UTCCP") if (length := loop_of(listing, opcode)) is not None]
    assert len(lengths) == (1 if case.kernel == "gemm" else 2)
    good = not notes and not resources.spill_stores and lengths[0] <= LIMIT
    cells = [str(resources.registers), f"{resources.spill_stores} B", *(f"{length:.4g}" for length in lengths), *notes]
    return ", ".join(cells), good


def error_of(case: Case, m: int, n: int, k: int) -> float:
    """The largest difference, relative to the largest element."""
    if case.kernel == "gemm":
        found, expected = gemm(case.type, m, n, k, CTAS=case.ctas, STAGES=2, CLC=case.clc)
    else:
        found, expected = scaled(case.type, m, n, k, CTAS=case.ctas, STAGES=2, CLC=case.clc)
    return float(abs(found - expected).max() / abs(expected).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one shape each")
    shapes = SHAPES[: 1 if parser.parse_args().quick else None]
    print(f"{machine_line()}; registers, spilled, SASS for 128 bytes of K; largest relative error at m x n x k")
    rows, good = [], True
    for case in cases():
        archs = ["sm_100a"] if case.type in ("s8", "u8") else ["sm_100a", "sm_103a"]
        code = [code_of(case, arch) for arch in archs]
        errors = [error_of(case, m, n, k * case.elements) for m, n, k in shapes]
        good = good and all(fine for _, fine in code) and max(errors) <= TOLERANCE
        texts = [f"{error:.1e}" for error in errors]
        form = ("pair" if case.ctas == 2 else "block") + ", CLC" * case.clc
        rows.append([case.type, form, code[0][0], code[-1][0] if code[1:] else "-", *texts])
    head = ["type", "form", "sm_100a", "sm_103a", *(f"{m}x{n}x{k}·16 B" for m, n, k in shapes)]
    print_table(head, rows)
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
