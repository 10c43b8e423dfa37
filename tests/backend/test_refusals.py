"""What the backend does not take, each as a diagnostic: of LLVM, of inlined assembly, of ptxas."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_kernels import PIPE, Build, compile_tir, i32, kernel_a, pipe_kernel, ptx_of

from ptxdsl.backend.assemble import assemble, find_tool
from ptxdsl.backend.emit_ptx import emit
from ptxdsl.diagnostics import CompileError
from ptxdsl.lower.module import lower
from ptxdsl.options import Options
from ptxdsl.tir import I16, I32, I64, Const, Value, ptr


def refused(build: Build, **options: object) -> tuple[str, str, int | None]:
    with pytest.raises(CompileError) as caught:
        ptx_of(build, **options)
    (problem,) = caught.value.diagnostics
    return problem.code, problem.message, problem.span and problem.span.line


def test_what_the_target_lacks_never_reaches_llvm() -> None:
    k = pipe_kernel(
        lambda k, bars, _: k("pipe.commit_mma", None, bars, i32(0), method="commit_mma", cta_group=1, **PIPE) and None
    )
    code, message, line = refused(k, arch="sm_120a")
    assert (code, line) == ("E0701", 3)
    assert message.startswith("`commit_mma` does not exist on sm_120a: fifth-generation tensor cores (tcgen05) need")


def test_llvm_that_does_not_parse_is_a_diagnostic() -> None:
    module = Build().module()
    with pytest.raises(CompileError, match="E0801"):
        emit(lower(module, Options()).replace("ret void", "ret i32"), module, Options())


def test_an_intrinsic_that_does_not_exist_is_a_diagnostic() -> None:
    k = Build()
    k("barrier", None)
    text = lower(k.module(), Options()).replace("barrier.cta.sync", "barrier.cta.snyc")
    with pytest.raises(CompileError, match=r"there is no intrinsic llvm\.nvvm\.barrier\.cta\.snyc"):
        emit(text, k.module(), Options())


def asm(text: str, constraints: str, *operands: Value, results: tuple = (I32,)) -> Build:  # type: ignore[type-arg]
    k = Build()
    out = k.pointer("out", I32)
    op = k.op("asm", operands, results, text=text, constraints=constraints, side_effects=True)
    for result in op.results:
        k("store", None, out, result, align=result.ty.bytes)
    return k


def test_user_asm() -> None:
    assert "popc.b32 %r1, 5;" in ptx_of(asm("popc.b32 $0, $1;", "=r,n", i32(5)))
    assert "mov.b16 %rs1, 7;" in ptx_of(asm("mov.b16 $0, $1;", "=h,n", Const(I16, 7), results=(I16,)))


@pytest.mark.parametrize(
    ("text", "constraints", "operands", "message"),
    [
        ("popc.b32 $0, $1;", "=r,x", (i32(5),), "unknown constraint 'x'"),
        ("popc.b32 $0, $1;", "=r,l,~{flags}", (i32(5),), "unknown clobber '~{flags}'"),
        ("popc.b32 $0, $1;", "=r,r,r", (i32(5),), "2 operand constraints for 1 operand"),
        ("popc.b32 $0, $1;", "r", (i32(5),), "0 result constraints for 1 result"),
        ("popc.b32 $0, $7;", "=r,r", (i32(5),), "'$7' names no operand"),
        ("mov.b32 $0, $x;", "=r,r", (i32(5),), "'$' names no operand"),
        (
            "popc.b32 $0, $1;",
            "=r,r",
            (Const(I64, 5),),
            "constraint 'r' is a register of 32 bits, but the operand is an Int, UInt, Int64 or UInt64",
        ),
        ("popc.b32 $0, $1;", "=r,f", (i32(5),), "constraint 'f' is a Float32, but the operand is an Int32 or UInt32"),
        ("popc.b32 $0, $1;", "=f,r", (i32(5),), "constraint 'f' is a Float32, but the result is an Int32 or UInt32"),
        ("popc.b32 $0, $1;", "=r,3", (i32(5),), "constraint '3' names no result"),
    ],
)
def test_user_asm_that_llvm_would_die_of(text: str, constraints: str, operands: tuple, message: str) -> None:  # type: ignore[type-arg]
    assert refused(asm(text, constraints, *operands)) == ("E0346", f"inlined_assembly: {message}", 2)


def test_user_asm_constant_must_be_one() -> None:
    k = Build()
    x = k.scalar("x")
    k.op("asm", [x], [], text="// $0", constraints="n")
    assert refused(k)[1] == "inlined_assembly: constraint 'n' wants a constant"


@pytest.mark.usefixtures("ptxas")
def test_ptxas_errors_come_back_at_their_line() -> None:
    k = asm("foo.bar $0;", "=r")
    emitted = compile_tir(k.module())
    with pytest.raises(CompileError) as caught:
        assemble(emitted.ptx, Options(), emitted.line_map)
    problem = caught.value.diagnostics[0]
    assert problem.code == "E0802" and problem.message == "ptxas: Unknown modifier '.bar'"
    assert problem.span is not None and problem.span.line == 2
    assert problem.help == "the PTX is 'foo.bar %r1;'"


@pytest.mark.usefixtures("ptxas")
def test_too_much_shared_memory_is_shown_at_the_kernel() -> None:
    k = Build()
    shared = k("shared.alloc", ptr("shared"), bytes=1 << 20, align=8, name="big")
    k("store", None, shared, i32(1), align=4, volatile=True)
    emitted = compile_tir(k.module())
    with pytest.raises(CompileError) as caught:
        assemble(emitted.ptx, Options(), emitted.line_map)
    (problem,) = caught.value.diagnostics
    assert "uses too much shared data" in problem.message and problem.span is not None


@pytest.mark.usefixtures("ptxas")
def test_resources_and_notes() -> None:
    k = Build("k")
    k("setmaxnreg_inc", None, count=64)
    emitted = compile_tir(k.module())
    done = assemble(emitted.ptx, Options(), emitted.line_map)
    (note,) = done.log
    assert note.code == "W0803" and "'setmaxnreg' ignored" in note.message and note.severity == "warning"
    assert done.resources["k"].registers > 0 and done.resources["k"].spill_stores == 0
    emitted = compile_tir(kernel_a(True).module())
    assert assemble(emitted.ptx, Options()).resources["kernel_a"].shared == 512
    assert assemble(emitted.ptx, Options()).resources["kernel_a"].barriers == 1


def test_a_missing_assembler_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr("ptxdsl.backend.assemble._packaged", lambda name: None)
    with pytest.raises(CompileError) as caught:
        find_tool("ptxas")
    (problem,) = caught.value.diagnostics
    assert problem.code == "E0803" and "pip install nvidia-cuda-nvcc" in (problem.help or "")
