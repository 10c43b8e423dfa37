"""The proof's verdicts beside all interleavings: every kernel of the tests, up to 3 stages and 6 turns of its loops.

    python benchmarks/agreement.py [--mutants N] [FILE-STEM …]

With --mutants every N-th mutant of the clean kernels as well (16 takes two minutes). ``otherwise``: of those that
agree, kernels that fail in another way than the proof says.

A kernel that is proved must come to its end with the same result in all interleavings of all of its small launches, and
the trace check must find no race in them, lane by lane; one with a fault must fail in some. Exits 1 where one does not
agree. ``open``: kernels that are not provable, as their headers say: arrive_drop, a trip count that comes from shared
memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(TESTS / name) for name in ("card", "sim", "check"))]

from confirmed import AGREES, DISAGREES, OPEN, Confirmation, confirm, confirm_entry  # noqa: E402
from corpus import CLEAN, EXAMPLES, FAULTY, FIXED, ROOT, read  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

from ptxdsl.diagnostics import CompileError  # noqa: E402
from ptxdsl.explore.explore import Bounds  # noqa: E402

if TYPE_CHECKING:
    from corpus import Entry
    from mutants import Mutant

RINGS = ("04_kernel_a", "05_kernel_b", "06_score_ring", "07_bulk_copy_ring")
SAMPLES = [ROOT / "samples" / f"{stem}.pdsl" for stem in RINGS]

HEAD = ["kernels", "verdicts", "agree", "disagree", "open", "otherwise", "instances", "runs", "processor"]

Named = Iterator[tuple[str, Callable[[], Iterator[Confirmation]]]]


def kernels(stems: list[str], mutants_of: int) -> Iterator[tuple[str, Named]]:
    """Of each sort its kernels by their names."""
    yield "examples", _files((TESTS / "data" / "examples").glob("*.pdsl"), confirm)
    yield "faults", _files((TESTS / "sim" / "faults").glob("*.pdsl"), confirm)
    yield "samples", _files(SAMPLES, lambda path: confirm_entry(read(path)))
    yield "clean corpus", _files(CLEAN, lambda path: confirm_entry(read(path)))
    yield "faulty corpus", _files([*FAULTY, *FIXED], lambda path: confirm_entry(read(path)))
    if mutants_of:
        yield "mutants", _mutants(mutants_of)


def _files(paths: Iterable[Path], confirmed: Callable[[Path], Iterator[Confirmation]]) -> Named:
    for path in sorted(paths):
        yield path.stem, partial(confirmed, path)


def _mutants(step: int) -> Named:
    from mutants import mutants

    entries = [read(path) for path in (*CLEAN, *EXAMPLES, *SAMPLES)]
    every = [(entry, mutant) for entry in entries for mutant in mutants(entry.name, entry.text)]
    bounds = Bounds(runs=100, turns=5000, seconds=5)
    for entry, mutant in every[::step]:

        def confirmed(entry: Entry = entry, mutant: Mutant = mutant) -> Iterator[Confirmation]:
            try:
                yield from islice(confirm_entry(entry, mutant.text, bounds), 1)
            except CompileError:
                return  # it is no program

        yield mutant.name, confirmed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stems", nargs="*")
    parser.add_argument("--mutants", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    print(machine_line())
    rows, disagree = [], 0
    for title, named in kernels(arguments.stems, arguments.mutants):
        start = time.process_time()
        found: list[Confirmation] = []
        for name, confirmed in named:
            if arguments.stems and not any(stem in name for stem in arguments.stems):
                continue
            for confirmation in confirmed():
                found.append(confirmation)
                if confirmation.answer != AGREES or confirmation.otherwise or arguments.stems:
                    print(f"{name}: {confirmation.text()}", flush=True)
        if not found:
            continue
        count = {answer: sum(c.answer == answer for c in found) for answer in (AGREES, DISAGREES, OPEN)}
        disagree += count[DISAGREES]
        instances, runs = sum(len(c.seen) for c in found), sum(c.runs for c in found)
        otherwise = sum(c.otherwise for c in found)
        rows.append([title, *map(str, (len(found), *count.values(), otherwise, instances, runs))])
        rows[-1].append(f"{time.process_time() - start:.1f} s")
    print_table(HEAD, rows)
    return 1 if disagree else 0


if __name__ == "__main__":
    sys.exit(main())
