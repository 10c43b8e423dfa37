"""Which kernels go through LLVM's passes over functions alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from backend_kernels import PIPE, Build, i32

from ptxdsl.backend.assemble import assemble, disassemble
from ptxdsl.backend.emit_ptx import optimised_alone
from ptxdsl.driver import Job, run
from ptxdsl.imports import read_file
from ptxdsl.llvm_library import machine
from ptxdsl.lower.llvm_types import TRIPLE
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.tir import I32, Module, Op, Value, ptr

SAMPLES = Path(__file__).parents[2] / "samples"
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s.*;", re.M)
WAIT: dict[str, Any] = {**PIPE, "method": "wait", "producer": False, "side": "full", "subs": 1, "sub": 0}


def waiting(index: Callable[[Value], Value] = lambda i: i32(1), more: Callable[[Build, Value], None] | None = None):
    """A loop that waits for stage ``index(i)``, and what else is in it."""
    k = Build()
    k.pointer("out")
    n = k.scalar("n")
    bars = k("shared.alloc", ptr("shared"), bytes=48, align=8, name="bars")

    def body(_: Op, i: Value) -> None:
        k("pipe.wait", None, bars, index(i), i32(0), **WAIT)
        if more is not None:
            more(k, i)

    k.for_(i32(0), n, [], body)
    return k


def own_loop(k: Build, i: Value) -> None:
    k.for_(i32(0), i, [], lambda op, j: None)


def test_a_ring_of_constant_stages() -> None:
    assert optimised_alone(waiting().module()) == ["k"]
    assert optimised_alone(run(Job(read_file(str(SAMPLES / "04_kernel_a.pdsl"))), "rings")) == ["kernel"]


@pytest.mark.parametrize(
    "build",
    [
        waiting(index=lambda i: i),
        waiting(more=own_loop),
        waiting(more=lambda k, i: k("mod.u", I32, i32(7), i)),
        waiting(more=lambda k, i: k("alloca", ptr("generic"), bytes=16, align=4)),
        Build(),
    ],
    ids=["a stage in a register", "a loop of its own", "a division", "a variable on the stack", "no pipeline"],
)
def test_others_take_the_long_way(build: Build) -> None:
    assert optimised_alone(build.module()) == []


def test_a_division_by_a_constant_is_none() -> None:
    assert optimised_alone(waiting(more=lambda k, i: k("mod.u", I32, i, i32(7))).module()) == ["k"]


def test_one_kernel_that_needs_it_takes_all_along() -> None:
    other = waiting(more=own_loop)
    other.name = "other"
    assert optimised_alone(Module([waiting().kernel(), other.kernel()])) == []


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize("sample", ["04_kernel_a", "05_kernel_b", "06_score_ring"])
def test_machine_code_is_as_long_both_ways(sample: str) -> None:
    options = Options(arch="sm_100a" if sample == "05_kernel_b" else "sm_90a")
    module = run(Job(read_file(str(SAMPLES / f"{sample}.pdsl")), options=options), "rings")
    alone = optimised_alone(module)
    assert alone
    ir = lower(module, options)
    short, long = (
        disassemble(assemble(machine(TRIPLE, options.arch, "+ptx86", way).assembly(ir, functions), options, ()).cubin)
        for way, functions in ((True, alone), (False, []))
    )
    assert len(INSTRUCTION.findall(short)) <= len(INSTRUCTION.findall(long)) + 8  # code is filled up to eight
