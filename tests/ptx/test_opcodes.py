"""The table of PTX's instructions: its effects are those of the language's rows, and whole texts are known to it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from ptxdsl.driver import compile_source
from ptxdsl.effects import PURE, Effect, Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.lower.intrinsic import ptx_text
from ptxdsl.options import Options
from ptxdsl.ptx.module import Instruction, Label
from ptxdsl.ptx.opcodes import ROWS as OPCODES
from ptxdsl.ptx.opcodes import UNKNOWN, effect, effects, row, sources
from ptxdsl.ptx.reader import read
from ptxdsl.record import replace
from ptxdsl.source import Source

HERE = Path(__file__).parent
HEAD = ".version 8.7\n.target sm_100a\n.address_size 64\n"
PARAMETERS: dict[str, object] = {
    "count": 64, "clamp": 31, "n": 0, "num_threads": 64, "cta_group": 1, "hint": ".L1::evict_last", "bytes": 16,
    "sem": "acq_rel", "scope": "gpu", "space": ".global", "T": "uint32", "op": "add", "lut": 42, "b": "b32",
    "priority": "evict_first", "rank": 2, "k": 16, "types": "f32.bf16.bf16", "tail": ", 1, 1, 0, 0", "selector": 0,
    "trans": "", "columns": 64, "kind": "f16", "power": 3, "block": 32, "shape": ".32x32b.x1", "split": "",
    "fields": 1 << 62, "offset": 2, "collector": "b0::fill", "width": 32, "form": "", "reduction": ".min",
    "field": "box_dim", "dim": 1, "value": 3,
}  # fmt: skip
WARP_PRODUCT: dict[str, object] = {"shape": "m16n8k16", "types": ".f32.bf16.bf16.f32"}


def filled(text: str) -> str:
    parameters = {**PARAMETERS, **WARP_PRODUCT} if text.startswith("mma.") else PARAMETERS
    return re.sub(r"\{(\w+)\}", lambda m: ptx_text(parameters[m[1]]) if m[1] in parameters else m[0], text)


@cache
def from_llvm() -> dict[str, list[Instruction | Label]]:
    """Each row that is an LLVM intrinsic, as the backend writes it: its body without the frame around it."""
    declarations, kernels = set(), []
    for name, of in ROWS.items():
        match = re.fullmatch(r"(\S+)(?: range\([^)]*\))? @([\w.]+)\((.*)\)", filled(of.text))
        if of.lowering != "llvm":
            continue
        assert match, of.text
        result, function, written = match.groups()
        arguments = [argument.split() for argument in written.split(", ") if argument]
        declarations.add(f"declare {result} @{function}({', '.join(type for type, _ in arguments)})")
        given = [(type, value.replace("$", "%a")) for type, value in arguments]
        parameters = ["ptr addrspace(1) %out", *(f"{type} {value}" for type, value in given if value[0] == "%")]
        call = f"call {result} @{function}({', '.join(f'{type} {value}' for type, value in given)})"
        if result != "void":
            call = f"%r = {call}\n  store {result} %r, ptr addrspace(1) %out"
        kernels.append(f"define ptx_kernel void @{name}({', '.join(parameters)}) {{\n  {call}\n  ret void\n}}")
    text = "\n".join(['target triple = "nvptx64-nvidia-cuda"', *sorted(declarations), *kernels])
    compiled = compile_source(Source("rows.ll", text), options=Options(arch="sm_100a"))
    assert not isinstance(compiled, str)
    frame = ("ld.param", "st.global", "cvta", "ret")
    return {
        name: [s for s in function.body if isinstance(s, Label) or not s.opcode.startswith(frame)]
        for name, function in read(compiled.ptx).functions.items()
    }


def from_template(text: str) -> list[Instruction | Label]:
    """A row of inline assembly with registers in the places of its operands."""
    text = re.sub(r"\$r\*", "%r0", re.sub(r"\$(r?\d)\*", r"$\1", filled(text)))
    text = re.sub(r"\$(r?)(\d)", lambda m: f"%{m[1] or 'a'}{m[2]}", text)
    return read(f"{HEAD}.entry k() {{ .reg .b64 %a<9>, %r<9>;\n{text}\n}}").functions["k"].body


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_language_has_the_effect_of_its_ptx(name: str) -> None:
    of = ROWS[name]
    body = from_template(of.text) if of.lowering == "asm" else from_llvm()[name]
    found = [what for _, what in effects(body) if what != PURE]
    # What the row leaves to a parameter the instruction says.
    expected = replace(
        of.effect,
        space="global" if "{space}" in of.text else of.effect.space,
        scope="gpu" if "{scope}" in of.text else of.effect.scope,
    )
    if of.effect.kind is Kind.TRAP:
        assert expected in found
        assert all(what.kind is Kind.TRAP for what in found), "LLVM writes trap and exit"
    else:
        assert found == ([] if expected.kind is Kind.PURE else [expected])


def decoded(text: str) -> tuple[Instruction, Effect]:
    declarations = ".reg .b64 %a<9>, %r<9>; .reg .pred p;"
    (instruction,) = read(f"{HEAD}.entry k() {{ {declarations}\n{text}\n}}").functions["k"].body
    assert isinstance(instruction, Instruction)
    return instruction, effect(instruction)


BULK = "mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov.u32 %r1, %tid.x;", PURE),
        ("mov.u32 %r1, %clock;", Effect(Kind.READ)),
        ("ld.b32 %r1, [%a1];", Effect(Kind.READ)),
        ("ld.param::entry.b32 %r1, [%a1];", Effect(Kind.READ, "param")),
        ("ld.acquire.cluster.shared::cluster.b32 %r1, [%a1];", Effect(Kind.ATOMIC, "cluster", scope="cluster")),
        ("st.volatile.shared.b32 [%a1], %r1;", Effect(Kind.WRITE, "shared")),
        ("red.global.add.u32 [%a1], %r1;", Effect(Kind.ATOMIC, "global", scope="gpu")),
        ("bar.sync 1;", Effect(Kind.NAMED_SYNC, scope="cta", barrier=0, convergent=True)),
        ("barrier.cta.sync.aligned 0, 64;", Effect(Kind.NAMED_SYNC, scope="cta", barrier=0, convergent=True)),
        ("bar.red.popc.u32 %r1, 0, p;", Effect(Kind.CTA_SYNC, scope="cta", convergent=True)),
        ("barrier.arrive 3, 64;", Effect(Kind.NAMED_ARRIVE, scope="cta", barrier=0, convergent=True)),
        ("fence.acq_rel.cluster;", Effect(Kind.FENCE, scope="cluster")),
        ("fence.proxy.tensormap::generic.acquire.gpu [%a1], 128;", Effect(Kind.FENCE, proxy="tensormap", scope="gpu")),
        ("mbarrier.arrive.b64 %r1, [%a1];", Effect(Kind.BAR_ARRIVE, "shared", scope="cta", barrier=0)),
        ("mbarrier.arrive_drop.expect_tx.shared::cta.b64 _, [%a1], 64;",
         Effect(Kind.BAR_EXPECT, "shared", scope="cta", barrier=0, count=1, bytes=1)),
        ("mbarrier.test_wait.acquire.cta.shared::cta.b64 p, [%a1], %a2;",
         Effect(Kind.BAR_TEST, "shared", scope="cta", barrier=0)),
        (f"cp.async.bulk.tensor.2d.shared::cluster.global.{BULK} [%a1], [%a2, {{%r1, %r2}}], [%a3];",
         Effect(Kind.ASYNC_COPY, "shared", "async", "cluster", barrier=2, completes_on="mbarrier")),
        (f"cp.async.bulk.tensor.1d.shared::cluster.global.tile.{BULK}.multicast::cluster [%a1], [%a2, {{%r1}}], "
         "[%a3], %r2;", Effect(Kind.ASYNC_COPY, "cluster", "async", "cluster", barrier=2, completes_on="mbarrier")),
        ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%a1, {%r1}], [%a2];",
         Effect(Kind.ASYNC_COPY, "global", "async", completes_on="bulk-group")),
        (f"cp.async.bulk.shared::cta.global.{BULK} [%a1], [%a2], 64, [%a3];",
         Effect(Kind.ASYNC_COPY, "shared", "async", "cta", barrier=3, bytes=2, completes_on="mbarrier")),
        (f"clusterlaunchcontrol.try_cancel.async.shared::cta.{BULK}.b128 [%a1], [%a2];",
         Effect(Kind.ASYNC_COPY, "shared", "async", "cta", barrier=1, completes_on="mbarrier")),
        ("wgmma.commit_group.sync.aligned;",
         Effect(Kind.COMMIT, proxy="async", completes_on="wgmma-group", convergent=True)),
        ("tcgen05.wait::ld.sync.aligned;",
         Effect(Kind.WAIT_GROUP, "tensor", completes_on="tcgen05-wait-ld", convergent=True)),
        ("call g;", UNKNOWN),
        ("no.such.instruction %r1;", UNKNOWN),
    ],
)  # fmt: skip
def test_effects(text: str, expected: Effect) -> None:
    if text.startswith("call"):
        (instruction,) = read(f"{HEAD}.func g; .entry k() {{ {text} }}").functions["k"].body
        assert isinstance(instruction, Instruction)
        assert effect(instruction) == expected
    else:
        assert decoded(text)[1] == expected


def test_positions_in_an_effect_count_the_sources() -> None:
    instruction, what = decoded("mbarrier.arrive.shared::cta.b64 %r1, [%a1], 3;")
    assert what.barrier is not None
    assert what.count is not None
    assert sources(instruction)[what.barrier] == instruction.operands[1]
    assert sources(instruction)[what.count] == instruction.operands[2]


TRY = "mbarrier.try_wait.parity.shared::cta.b64 p, [%a1], 0;"


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        (f"W: {TRY} @!p bra W;", True),
        (f"W: {TRY} @p bra D; bra W; D: ret;", True),
        (f"W: {TRY} @p bra.uni D; bra.uni W; D: ret;", True),
        (f"W: {TRY} @p bra W;", False),
        (f"W: {TRY} @!p bra D; bra W; D: ret;", False),
        (f"W: {TRY} @p bra E; bra W; D: ret; E: ret;", False),
        (f"W: mov.b64 %r1, 0; {TRY} @!p bra W;", False),
        (f"W: {TRY} mov.b64 %r1, 0; @!p bra W;", False),
        (TRY, False),
    ],
)
def test_a_loop_around_a_test_is_a_wait(text: str, waits: bool) -> None:
    body = read(f"{HEAD}.entry k() {{ .reg .b64 %a<9>, %r<9>; .reg .pred p;\n{text}\n}}").functions["k"].body
    kinds = {what.kind for _, what in effects(body)}
    assert (Kind.BAR_WAIT in kinds, Kind.BAR_TEST in kinds) == (waits, not waits)


def test_every_instruction_of_another_compiler_has_a_row(nvcc: Callable[..., str]) -> None:
    functions = read(nvcc(HERE / "data" / "foreign.cu", "-arch=sm_80")).functions.values()
    found = {i.opcode for f in functions for i in f.body if isinstance(i, Instruction)}
    assert found
    assert [opcode for opcode in sorted(found) if row(opcode) is None] == []


def test_an_opcode_finds_its_longest_prefix() -> None:
    assert row("cp.async.bulk.wait_group.read") is OPCODES["cp.async.bulk.wait_group"]
    assert row("cp.async.ca.shared.global") is OPCODES["cp.async"]
    assert row("bar.warp.sync") is OPCODES["bar.warp.sync"]
    assert row("addition.u32") is None
