"""The proof's verdicts beside all interleavings: every kernel of the tests, up to 3 stages and 6 turns of its loops.

    python benchmarks/agreement.py [FILE-STEM …]

A kernel that is proved must come to its end with the same result in all interleavings of all of its small launches, and
the trace check must find no race in them; one with a fault must fail in some. Exits 1 where one does not agree.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(HERE), str(HERE.parent), *(str(TESTS / name) for name in ("card", "sim", "check"))]

from confirmed import AGREES, DISAGREES, OPEN, Confirmation, confirm  # noqa: E402
from machine import machine_line, print_table  # noqa: E402

FOLDERS = {
    "examples": TESTS / "data" / "examples",
    "faults": TESTS / "sim" / "faults",
    "clean corpus": TESTS / "check" / "clean",
    "faulty corpus": TESTS / "check" / "faulty",
}


def main(stems: list[str]) -> int:
    print(machine_line())
    rows, disagree = [], 0
    for title, folder in FOLDERS.items():
        paths = [p for p in sorted(folder.glob("*.pdsl")) if not stems or any(stem in p.stem for stem in stems)]
        if not paths:
            continue
        start = time.process_time()
        found: list[Confirmation] = []
        for path in paths:
            for confirmation in confirm(path):
                found.append(confirmation)
                if confirmation.answer != AGREES or stems:
                    print(confirmation.text(), flush=True)
        count = {answer: sum(c.answer == answer for c in found) for answer in (AGREES, DISAGREES, OPEN)}
        disagree += count[DISAGREES]
        instances, runs = sum(len(c.seen) for c in found), sum(c.runs for c in found)
        rows.append([title, *map(str, (len(found), *count.values(), instances, runs))])
        rows[-1].append(f"{time.process_time() - start:.1f} s")
    print_table(["kernels", "verdicts", "agree", "disagree", "open", "instances", "runs", "processor"], rows)
    return 1 if disagree else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
