"""What is proved is what runs: the protocol in a kernel's PTX is the one that the compiler's own representation has."""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from pathlib import Path

import agreement
import pytest

from ptxdsl.effects import Kind
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import const
from ptxdsl.protocol.model import Kernel, Op, Place
from ptxdsl.protocol.rewriting import mapped
from ptxdsl.record import replace

ROOT = Path(__file__).parents[2]
TARGETS = ("sm_90a", "sm_100a")

FOLDERS = {
    "samples": "*.pdsl", "tests/data/examples": "*.pdsl", "tests/data/oracle": "*.mojo", "tests/sim/faults": "*.pdsl",
    "tests/check/clean": "*.pdsl",
}  # fmt: skip

# Values beside the usual ones, where they are needed to come to every operation.
INTEGERS = {
    "07_bulk_copy_ring": {"n": tuple(range(0, 2048 * 28, 3 * 1024))},
    "08_gemm_hopper": {"m": (0, 300), "n": (0, 300), "k": (64, 500), "batches": (1, 2)},
    "11_gemm_stream_k": {"m": (130,), "n": (130,), "k": (64, 200, 500)},  # four tiles of three blocks
    "big_gemm_two_rings_clean": {"k": (0, 8, 16, 24, 32, 40, 56, 64)},
}

CONSTANTS = {"07_bulk_copy_ring": {"RUN": 14}}

# Other forms of a kernel, with fewer arguments.
FORMS = {
    "08_gemm_hopper": (
        {"CLUSTER": 2, "B_MN": True, "BN": 128},
        {"T": "DType.float8_e4m3fn", "C": "DType.float32", "BN": 128},
    )
}

# Those that go by what they read from memory that is written: a thread alone does not tell.
GO_BY_MEMORY = {"tiles_from_a_counter"}

CASES = [
    case
    for folder, pattern in FOLDERS.items()
    for path in sorted((ROOT / folder).glob(pattern))
    if "# verdict: trace" not in path.read_text(encoding="utf-8")  # there is no model of these to compare
    and path.stem not in GO_BY_MEMORY
    for case in agreement.cases(path, INTEGERS.get(path.stem), CONSTANTS.get(path.stem))
]
CASES += [
    dataclasses.replace(case, constants=form, runs=4)
    for case in CASES
    for form in FORMS.get(case.path.stem, ())
    if not case.constants
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_thread_does_the_same(case):
    for tir, ptx, signature in agreement.models_of_some_target(case, TARGETS):
        found = agreement.compare(case, tir, ptx, signature)
        assert found.difference is None
        assert not found.idle_tir or case.name.endswith("faulty") or "faulty-" in case.name


# ------------------------------------------------------------------- the comparison notices what is not the same

SENSITIVE = ["samples/04_kernel_a.pdsl", "samples/06_score_ring.pdsl", "tests/data/examples/big_row_stats_clean.pdsl"]


@lru_cache
def models(path):
    (case,) = agreement.cases(ROOT / path)
    ((tir, ptx, signature),) = agreement.models_of_some_target(case, TARGETS)
    return case, tir, ptx, signature


def operations(kernel, kinds=None):
    found = []
    mapped(kernel.program, lambda node: found.append(node) if isinstance(node, Op) else None)
    return [op for op in found if (kinds is None or op.kind in kinds) and op.kind is not Kind.WARP_SYNC]


def with_another(kernel, old, new):
    """The kernel with an operation changed; new None: without it."""
    from ptxdsl.protocol.model import Seq

    program = mapped(kernel.program, lambda node: (new or Seq(())) if node is old else None)
    return Kernel(kernel.name, kernel.span, program, kernel.arrays, kernel.variables, kernel.threads, kernel.cluster)


def moved(place, by):
    return None if place is None else Place(plain("add", place.address, const(by, 64), bits=64), place.width)


CHANGES = {
    "dropped": lambda op: None,
    "another barrier": lambda op: replace(op, barrier=moved(op.barrier, 8)) if op.barrier else op,
    "the other parity": lambda op: replace(op, parity=plain("xor", op.parity, const(1))) if op.parity else op,
    "another count": lambda op: replace(op, count=const(7)) if op.kind is Kind.BAR_INIT else op,
    "other bytes": lambda op: replace(op, writes=tuple(moved(place, 4) for place in op.writes)),
}


@pytest.mark.parametrize("path", SENSITIVE)
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_operation_is_noticed(path, change):
    case, tir, ptx, signature = models(path)
    changed = 0
    for op in operations(ptx):
        new = CHANGES[change](op)
        if new == op or (op.kind is Kind.READ and change == "dropped"):  # a read less is the compiler's right
            continue
        changed += 1
        found = agreement.compare(case, tir, with_another(ptx, op, new), signature)
        assert found.difference is not None, op
    assert changed
