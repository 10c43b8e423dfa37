"""Dumps what the card makes of mbarrier operations and bulk reductions, as JSON, for the simulator's tests.

    python3 tests/device/dump_async.py > tests/sim/data/async.json

``barriers``: sequences of operations by one thread; after each the barrier's raw word and what it returned.
``reductions``: cp.reduce.async.bulk to global memory over special values: the destination before, source, and after.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from card import Card

HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n"

# An operation is a name and a number, the result goes to d. What each one is in PTX:
OPERATIONS = {
    "init": "mbarrier.init.shared::cta.b64 [bar], {0};",
    "arrive": "mbarrier.arrive.shared::cta.b64 d, [bar], {0};",
    "arrive_no_complete": "mbarrier.arrive.noComplete.shared::cta.b64 d, [bar], {0};",
    "arrive_drop": "mbarrier.arrive_drop.shared::cta.b64 d, [bar], {0};",
    "arrive_expect_tx": "mbarrier.arrive.expect_tx.shared::cta.b64 d, [bar], {0};",
    "expect_tx": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {0};",
    "complete_tx": "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], {0};",
    "test_parity": "mbarrier.test_wait.parity.shared::cta.b64 p, [bar], {0}; selp.b64 d, 1, 0, p;",
    "pending_count": "mbarrier.pending_count.b64 w, d; cvt.u64.u32 d, w;",
    "noinc": "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; nanosleep.u32 5000;",
    "cp_async_arrive": "cp.async.mbarrier.arrive.shared::cta.b64 [bar]; nanosleep.u32 5000;",
}
SEQUENCES = [
    "init 5, arrive 1, arrive 2, test_parity 0, test_parity 1, arrive 2, test_parity 0, test_parity 1, arrive 5",
    "init 1, expect_tx 100, arrive 1, complete_tx 60, complete_tx 40, expect_tx 1048575, complete_tx 1048575, "
    "arrive_expect_tx 16, complete_tx 16, complete_tx 32, arrive_expect_tx 32, complete_tx 1, arrive 1, expect_tx 1",
    "init 1048575, arrive 1048574, arrive 1, arrive_drop 1048570, arrive 5, arrive 5",
    "init 4, arrive_no_complete 2, pending_count 0, arrive 2, pending_count 0, arrive_drop 1, pending_count 0, "
    "arrive 3, arrive 3",
    "init 3, cp_async_arrive 0, noinc 0, arrive 2",
    "init 1, complete_tx 8, arrive 1, test_parity 0, expect_tx 8, test_parity 0",
    "init 2, expect_tx 8, arrive 2, complete_tx 8, init 7, arrive 3, init 7",
    # misuse from here on: what the card does, for curiosity
    "init 2, arrive 3, arrive 1, arrive 1",
    "init 2, expect_tx 8, arrive 2, arrive 1, complete_tx 8",
    "init 1, expect_tx 1048575, expect_tx 1, expect_tx 1048575, complete_tx 1",
    "init 1, complete_tx 1048575, complete_tx 1, complete_tx 1",
    "init 2, arrive_drop 2, arrive 1",
]


def barrier_kernel(operations: list[str]) -> str:
    """Executes them and writes the last one's result, and the word that is in memory once the barrier is invalidated:
    a live one is kept elsewhere."""
    steps = []
    for operation in operations:
        name, value = operation.split()
        steps.append(OPERATIONS[name].format(value))
    return (
        HEADER
        + ".visible .entry barrier(.param .u64 out) {\n.reg .b64 o, d, e; .reg .b32 w; .reg .pred p;\n"
        + ".shared .align 8 .b64 bar;\nld.param.u64 o, [out]; mov.u64 d, 0;\n"
        + "\n".join(steps)
        + "\nst.global.b64 [o+8], d;\nmbarrier.inval.shared::cta.b64 [bar];\n"
        + "ld.volatile.shared.b64 e, [bar]; st.global.b64 [o], e;\nret;\n}\n"
    )


def run_barriers(first: int = 0) -> list[list[dict[str, str]]]:
    """Every sequence from ``first`` on, in a process of its own: one that the card ends takes the context with it."""
    command = [sys.executable, __file__, str(first)]
    results: list[list[dict[str, str]]] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    done = first + len(results)
    return results + run_barriers(done) if done < len(SEQUENCES) else results


def barriers_here(first: int) -> list[list[dict[str, str]]]:
    """The sequences from ``first`` on, up to one that the card ends."""
    card, results = Card(16384), []
    for sequence in SEQUENCES[first:]:
        operations = sequence.split(", ")
        results.append([])
        for number in range(len(operations)):
            try:
                results[-1].append(run_barrier(card, operations[: number + 1]))
            except RuntimeError as problem:
                results[-1].append({"operation": operations[number], "result": str(problem)})
                return results
    return results


def run_barrier(card: Card, operations: list[str]) -> dict[str, str]:
    card.launch(card.kernel(barrier_kernel(operations), "barrier"), [card.memory], 0, threads=1)
    word, result = card.read(card.memory, 16).view(np.uint64)
    return {"operation": operations[-1], "word": f"{int(word):016x}", "result": f"{int(result):016x}"}


REDUCE = """
.visible .entry reduce(.param .u64 to, .param .u64 from, .param .u32 bytes)
{{
.reg .b32 i, a, n; .reg .b64 t, f, d; .reg .pred p;
.shared .align 128 .b8 source[4096];
ld.param.u64 t, [to]; ld.param.u64 f, [from]; ld.param.u32 n, [bytes];
mov.u32 a, source; mov.u32 i, 0;
COPY: ld.global.b64 d, [f]; st.shared.b64 [a], d; add.u64 f, f, 8; add.u32 a, a, 8; add.u32 i, i, 8;
setp.lt.u32 p, i, n; @p bra COPY;
fence.proxy.async;
mov.u32 a, source;
cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [t], [a], n;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
}}
"""
REDUCTIONS = [
    *[f"add.{t}" for t in ("u32", "s32", "u64", "f32", "f64", "noftz.f16", "noftz.bf16")],
    *[f"{o}.{t}" for o in ("min", "max") for t in ("u32", "s32", "u64", "s64", "f16", "bf16")],
    *["inc.u32", "dec.u32"],
    *[f"{o}.{t}" for o in ("and", "or", "xor") for t in ("b32", "b64")],
]
# Bit patterns in hex: zeros, subnormals, ones and their neighbours, the largest, infinities, quiet and signalling NaNs.
SPECIAL = {
    "f16": "0 8000 1 8001 3ff 400 3c00 3c01 bc00 7bff fbff 7c00 fc00 7e00 7c01 fe33 1400 1401",
    "bf16": "0 8000 1 8001 7f 80 3f80 3f81 bf80 7f7f ff7f 7f80 ff80 7fc0 7f81 ffc3 3b80 3b81",
    "f32": "0 80000000 1 80000001 7fffff 800000 80800001 3f800000 3f800001 bf800000 33800000 33800001 7f7fffff "
    "ff7fffff 7f800000 ff800000 7fc00000 7f800001 ffc12345",
    "f64": "0 8000000000000000 1 fffffffffffff 10000000000000 3ff0000000000000 3ff0000000000001 bff0000000000000 "
    "3ca0000000000000 7fefffffffffffff 7ff0000000000000 fff0000000000000 7ff8000000000000 7ff0000000000001",
    "32": "0 1 2 7 7fffffff 80000000 80000001 ffffffff 12345678",
    "64": "0 1 7 7fffffffffffffff 8000000000000000 ffffffffffffffff 123456789abcdef0",
}


def run_reduction(card: Card, operation: str) -> dict[str, Any]:
    kind = operation.rsplit(".", 1)[1]
    width = int(kind.lstrip("bfus"))
    values = [int(v, 16) for v in (SPECIAL.get(kind) or SPECIAL[str(width)]).split()]
    pairs = list(itertools.product(values, values))
    pairs += [(0, 0)] * (-len(pairs) % (128 // width))
    before, source = (np.array(side, f"u{width // 8}") for side in zip(*pairs, strict=True))
    card.write(card.memory, before)
    card.write(card.memory + 8192, source)
    kernel = card.kernel(HEADER + REDUCE.format(operation=operation), "reduce")
    card.launch(kernel, [card.memory, card.memory + 8192, before.nbytes], 0, threads=1)
    after = card.read(card.memory, before.nbytes)
    return {
        "operation": operation,
        "before": before.tobytes().hex(),
        "source": source.tobytes().hex(),
        "after": after.tobytes().hex(),
    }


def main() -> None:
    if len(sys.argv) == 2:
        json.dump(barriers_here(int(sys.argv[1])), sys.stdout)
        return
    card = Card(16384)
    dump = {
        "device": card.name,
        "driver": card.driver_version,
        "reductions": [run_reduction(card, operation) for operation in REDUCTIONS],
        "barriers": run_barriers(),
    }
    json.dump(dump, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
