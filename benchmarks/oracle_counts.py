"""Our PTX and SASS instruction counts beside the reference compiler's, for every kernel of tests/data/oracle.

    python benchmarks/oracle_counts.py [--wait try|probe] [FILE-STEM …]

Kernels without a ring loop are compared as a whole. A loop is compared an iteration: its instructions by the stages it
covers, role by role, with rings unrolled (the default) and with ``--no-ring-unroll``; whole kernels with loops only in
the second form, since an unrolled ring is longer as a whole and shorter an iteration. Exits 1 where we are larger, or
above a limit for kernels A and B. The reference: Mojo 1.2.0, its PTX assembled by ptxas 13.5.
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from count import LoopCount, ptx_count, ptx_loops, sass_count, sass_loops  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.artifact import Compiled  # noqa: E402
from ptxdsl.diagnostics import CompileError  # noqa: E402
from ptxdsl.driver import compile_source  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.syntax.parse import read_source  # noqa: E402

ORACLE = HERE.parent / "tests" / "data" / "oracle"
SAMPLES = HERE.parent / "samples"
# the samples that are these kernels (they state the block's size), and what an iteration of producer and consumer may
# take with rings unrolled: (PTX, SASS)
SAMPLE_OF = {"kernel_a": "04_kernel_a", "kernel_b": "05_kernel_b"}
LIMITS = {"kernel_a": ((11.0, 11.0), (9.7, 9.7)), "kernel_b": ((11.0, 11.0), (7.5, 9.2))}


@dataclass(frozen=True)
class Counts:
    ptx: int
    sass: int
    ptx_loops: list[LoopCount]
    sass_loops: list[LoopCount]


def count_ours(path: Path, arch: str, wait: str, ring_unroll: bool) -> Counts:
    options = Options(arch=arch, wait=wait, ring_unroll=ring_unroll)  # type: ignore[arg-type]
    source = read_source(path, path.name)
    kernel = "kernel" if path.suffix == ".mojo" else None
    made = compile_source(source, kernel=kernel, options=options)
    listing = compile_source(source, kernel=kernel, options=options, stop="sass")
    assert isinstance(made, Compiled) and isinstance(listing, str)
    return Counts(ptx_count(made.ptx), sass_count(listing), ptx_loops(made.ptx), sass_loops(listing))


def reference_loops(text: str) -> list[float]:
    """ "23/1 22/1" to instructions a stage, producer first."""
    return [int(length) / int(arrives) for length, arrives in (entry.split("/") for entry in text.split())]


def compare_loops(
    ours: list[LoopCount], theirs: list[float], limit: tuple[float, ...] | None = None
) -> tuple[str, bool]:
    """A cell and whether we are within the reference and the limit."""
    per_stage = [loop.per_stage for loop in ours]
    fine = len(per_stage) == len(theirs) and all(a <= b for a, b in zip(per_stage, theirs, strict=False))
    if limit is not None:  # the limits are given to one decimal
        fine = fine and all(round(a, 1) <= b for a, b in zip(per_stage, limit, strict=False))
    cell = "/".join(f"{value:.4g}" for value in per_stage) or "none"
    reference = "/".join(f"{value:.4g}" for value in theirs)
    wanted = f" limit {'/'.join(map(str, limit))}" if limit else ""
    return f"{cell} ({reference}{wanted}){'' if fine else ' LARGER'}", fine


def compare_whole(ours: int, theirs: int) -> tuple[str, bool]:
    return f"{ours} ({theirs}){'' if ours <= theirs else ' LARGER'}", ours <= theirs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wait", choices=("try", "probe"), default="try", help="form of the waits (default: try)")
    parser.add_argument("files", nargs="*", help="stems of tests/data/oracle; all without any")
    chosen = parser.parse_args()
    with open(HERE / "data" / "oracle_counts.csv") as file:
        references = [row for row in csv.DictReader(file) if not chosen.files or row["file"] in chosen.files]
    print(f"{machine_line()}; --wait={chosen.wait}; ours (reference)")
    rows, good = [], True
    for row in references:
        name = row["file"]
        has_loops = bool(row["ptx_loops"])
        forms = [(name, ORACLE / f"{name}.mojo", True), (f"{name} --no-ring-unroll", ORACLE / f"{name}.mojo", False)]
        if name in SAMPLE_OF:
            forms.insert(0, (f"samples/{SAMPLE_OF[name]}", SAMPLES / f"{SAMPLE_OF[name]}.pdsl", True))
        for label, path, ring_unroll in forms if has_loops else forms[:1]:
            try:
                ours = count_ours(path, row["target"], chosen.wait, ring_unroll)
            except CompileError as problem:
                worst = next(d for d in problem.diagnostics if d.severity == "error")
                rows.append([label, f"FAILED {worst.code} {worst.message}", "", "", ""])
                good = False
                continue
            if has_loops:  # counted by loops: an unrolled ring is larger as a whole and smaller per iteration
                limits = LIMITS.get(name) if label.startswith("samples") and chosen.wait == "try" else None
                ptx, sass = reference_loops(row["ptx_loops"]), reference_loops(row["sass_loops"])
                checks = [
                    compare_loops(ours.ptx_loops, ptx, limits and limits[0]),
                    compare_loops(ours.sass_loops, sass, limits and limits[1]),
                ]
                rows.append([label, "", "", checks[0][0], checks[1][0]])
            else:
                checks = [compare_whole(ours.ptx, int(row["ptx"])), compare_whole(ours.sass, int(row["sass"]))]
                rows.append([label, checks[0][0], checks[1][0], "", ""])
            good = good and all(fine for _, fine in checks)
    print_table(["kernel", "PTX", "SASS", "PTX an iteration", "SASS an iteration"], rows)
    print("PASS: nothing larger than the reference, nor than the limits" if good else "FAIL: see LARGER and FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
