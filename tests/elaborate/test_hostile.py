# ruff: noqa: E501  (programs are data)
"""Programs that once broke the compiler or kept it busy: each kind ends in a diagnostic, or in PTX, soon."""

from __future__ import annotations

import textwrap
import time

import pytest
from elaborate_support import diagnostics, typed, where

from ptxdsl.artifact import Compiled
from ptxdsl.backend.assemble import find_tool
from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink
from ptxdsl.driver import compile_source
from ptxdsl.source import Source

KERNEL = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32):\n"
SECONDS = 5.0  # of processor time, which no program may take


def codes(text: str) -> list[str]:
    return [d.code for d in diagnostics(text)]


ENDLESS = {
    "function": "def f(x: Int32) -> Int32:\n    return f(x)\n" + KERNEL + "    p[] = f(n)\n",
    "two functions": "def f(x: Int) -> Int:\n    return g(x)\ndef g(x: Int) -> Int:\n    return f(x)\ncomptime A = f(1)\n"
    + KERNEL + "    p[] = A\n",
    "default of an argument": "def f(x: Int = f()) -> Int:\n    return x\n" + KERNEL + "    p[] = Int32(f())\n",
    "default of a parameter": "def f[x: Int = f()]() -> Int:\n    return x\n" + KERNEL + "    p[] = Int32(f())\n",
    "where": "def f() where f():\n    pass\n" + KERNEL + "    f()\n",
    "where of a struct": "struct S[n: Int] where S[n + 1].ok:\n    comptime ok = True\n" + KERNEL + "    var s: S[1]\n",
    "alias": "comptime F[n: Int] = F[n + 1]\n" + KERNEL + "    p[] = F[0]\n",
    "implicit conversion": "struct S(TrivialRegisterPassable):\n    var x: Int32\n    @implicit\n"
    "    def __init__(out self, x: S):\n        self.x = 1\n    @implicit\n    def __init__(out self, x: Int32):\n"
    "        var s: S = x\n        self.x = s.x\n" + KERNEL + "    var s: S = n\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", ENDLESS)
def test_recursion_without_end_is_an_error(kind: str) -> None:
    assert codes(ENDLESS[kind]) == ["E0406"]


def test_thousands_of_names_that_need_each_other() -> None:
    names = "".join(f"comptime A{i + 1} = A{i} + 1\n" for i in range(1000))
    assert codes("comptime A0 = 1\n" + names + KERNEL + "    p[] = A1000\n") == ["E0406"]


EXPONENTIAL = {
    "alias": "comptime F[n: Int]: Int = 1 if n == 0 else F[n - 1] + F[n - 1]\n" + KERNEL + "    p[] = Int32(F[90])\n",
    "function": "def f(n: Int) -> Int:\n    return 1 if n == 0 else f(n - 1) + f(n - 1)\n" + KERNEL
    + "    comptime a = f(80)\n    p[] = Int32(a)\n",
    "loop": "def f() -> Int:\n    while True:\n        pass\n    return 1\ncomptime A = f()\n" + KERNEL + "    p[] = A\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", EXPONENTIAL)
def test_steps_at_compile_time_are_counted(kind: str) -> None:
    start = time.process_time()
    assert codes(EXPONENTIAL[kind]) == ["E0403"]
    assert time.process_time() - start < SECONDS


def test_a_limit_is_reported_once() -> None:
    loop = "    comptime for i in range(4000):\n        p[i] = Int32(i)\n"
    assert codes(KERNEL + loop * 9) == ["E0404"]


STRAIGHT = {
    "branches": "    var s = n\n" + "".join(f"    if n > {i}:\n        s = s * 3 + n\n" for i in range(600)) + "    p[] = s\n",
    "addresses": "    var s = n\n" + "".join(f"    s += p[unsafe_offset=s + {i}]\n" for i in range(120)) + "    p[] = s\n",
    "stores": "".join(f"    p[unsafe_offset={i}] = n + {i}\n" for i in range(3000)),
    "loads": "    var s = n\n" + "    s = p[unsafe_offset=s]\n" * 1000 + "    p[] = s\n",
    "products": "    var s = n\n" + "".join(f"    s = s * n + {i}\n" for i in range(1000)) + "    p[] = s\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", STRAIGHT)
def test_long_straight_code_compiles_soon(kind: str) -> None:
    start = time.process_time()
    compile_source(Source("k.pdsl", KERNEL + STRAIGHT[kind]))
    assert time.process_time() - start < SECONDS


def test_cutting_a_chain_costs_no_instruction() -> None:
    body = "    var s = n\n" + "".join(f"    s = s * n + {i}\n" for i in range(40)) + "    p[] = s\n"
    llvm = compile_source(Source("k.pdsl", KERNEL + body), stop="llvm")
    assert isinstance(llvm, str) and 'asm ""' in llvm
    ptx = compile_source(Source("k.pdsl", KERNEL + body)).ptx  # type: ignore[union-attr]
    assert "inline asm" not in ptx and "mov" not in ptx
    assert sum(ptx.count(name) for name in ("mul.lo.s32", "mad.lo.s32", "add.s32")) == 40


def test_thousands_of_diagnostics_are_collected_in_linear_time() -> None:
    start, sink = time.process_time(), DiagnosticSink()
    for _ in range(2):
        for i in range(20_000):
            sink.add(Diagnostic("E0201", f"unknown name `{i}`"))
    assert len(sink.items) == 20_000
    assert time.process_time() - start < SECONDS


def test_literals_beyond_every_float_are_out_of_range() -> None:
    for t in ("Float64", "Float32", "Float16"):
        assert codes(KERNEL + f"    var x = {t}(3 ** 4000)\n") == ["E0303"]


@pytest.mark.parametrize("condition", ["x", "not x", "Bool(x)", "x.cast[DType.bool]()"])
def test_a_float_as_a_condition(condition: str) -> None:
    typed(KERNEL + f"    var x = Float32(n)\n    if {condition}:\n        p[] = 1\n")


def test_what_does_not_fit_in_a_library_call_is_shown_at_the_call() -> None:
    (problem,) = diagnostics(KERNEL + "    p[] = p.unsafe_load[width=4096]()[0]\n")
    assert where(problem) == ("E0315", 3, 11)


def test_a_function_where_a_type_is_wanted() -> None:
    (problem,) = diagnostics(KERNEL + "    p[] = Int32(size_of[p.unsafe_offset]())\n")
    assert where(problem) == ("E0309", 3, 17)


def test_a_vector_is_no_index() -> None:
    body = "    var v = SIMD[DType.int32, 4](1)\n    p[] = v[SIMD[DType.int32, 4](1)]\n"
    (problem,) = diagnostics(KERNEL + body)
    assert where(problem) == ("E0331", 4, 13)


AFTER_AN_ERROR = {
    "a variable in a loop": "    var s = n\n    for i in range(n):\n        s += nothing\n        s += 1\n    p[] = s\n",
    "a parameter": "    comptime S = nothing\n    var q = RolePipeline[S, True](p, p)\n",
}


@pytest.mark.parametrize("kind", AFTER_AN_ERROR)
def test_a_value_in_error_has_no_consequences(kind: str) -> None:
    assert codes(KERNEL + AFTER_AN_ERROR[kind]) == ["E0201"]


def test_the_heading_of_a_struct_may_name_self() -> None:
    text = "struct S[d: DType](Scalar[Self.nothing]):\n    pass\n" + KERNEL + "    var s: S[DType.int32]\n"
    (problem,) = diagnostics(text)
    assert where(problem) == ("E0330", 1, 32)


@pytest.mark.parametrize("name", ["a\nb.pdsl", "a\r.pdsl", 'a"b.pdsl', "é.pdsl", "a*/.pdsl"])
def test_a_file_may_be_called_anything(name: str) -> None:
    ptx = compile_source(Source(name, KERNEL + "    p[] = n\n")).ptx  # type: ignore[union-attr]
    lines = ptx.split("\n")
    assert lines[0].startswith("// generated") and lines[1].startswith("// --arch") and lines[3].startswith(".version")


def test_a_constant_vector_as_the_bits_of_a_scalar() -> None:
    typed(KERNEL + "    p[] = bitcast[DType.int32, 1](SIMD[DType.int16, 2](7))\n")


def test_a_list_is_limited_as_an_array_is() -> None:
    (problem,) = diagnostics(KERNEL + "    var t = [" + "n, " * 2049 + "]\n    p[] = t[n]\n")
    assert where(problem) == ("E0314", 3, 13)


def test_a_kernel_named_as_a_constant_of_ptx() -> None:
    assert typed("def WARP_SZ(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 1\n").kernels[0].name == "WARP_SZ_"
    (problem,) = diagnostics('@kernel(name="WARP_SZ")\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 1\n')
    assert where(problem) == ("E0224", 1, 14)


def test_long_vectors_count_by_their_lanes() -> None:
    assert codes(KERNEL + "    var x = Array[SIMD[DType.float64, 256], 512](fill=1.5)\n    p[] = Int32(x[n][n])\n") == [
        "E0404"
    ]


@pytest.mark.parametrize("text", ["def k(p: Pointer[Int32, MutAnyOrigin], n: Int32, p: Int32):\n    pass\n",
                                  "def f(a: Int32, b: Int32, a: Int32) -> Int32:\n    return a\n" + KERNEL + "    p[] = f(n, n, n)\n"])  # fmt: skip
def test_arguments_have_different_names(text: str) -> None:
    assert codes(text) == ["E0202"]


def test_thousands_of_arguments_take_linear_time() -> None:
    declared, given = ", ".join(f"a{i}: Int32" for i in range(4000)), ", ".join(["n"] * 4000)
    start = time.process_time()
    typed(f"def f({declared}) -> Int32:\n    return a0\n" + KERNEL + f"    p[] = f({given})\n")
    assert time.process_time() - start < SECONDS


def test_what_ptxas_says_of_inline_assembly_is_shown_at_its_line() -> None:
    try:
        find_tool("ptxas")
    except CompileError:
        pytest.skip("ptxas is not installed")
    for text in ("é $0;", "nothing $0;"):
        body = f'    p[] = 1\n    p[] = inlined_assembly["{text}", Int32, constraints="=r,r"](n)\n'
        with pytest.raises(CompileError) as caught:
            compile_source(Source("k.pdsl", KERNEL + body), stop="cubin")
        problem = next(d for d in caught.value.diagnostics if d.severity == "error")
        assert problem.span is not None and (problem.code, problem.span.line) == ("E0802", 4)


def test_addresses_before_an_allocation_are_written_as_ptxas_reads_them() -> None:
    """Nobody should use them; what is refused, if anything, must not be the PTX."""
    text = """\
        @kernel
        def k(res: Pointer[Float32, MutAnyOrigin]):
            var bars = unsafe_stack_allocation[6, SharedMemBarrier, address_space=.SHARED]()
            var buf = unsafe_stack_allocation[6, Float32, address_space=.SHARED]()
            var b = bars.unsafe_offset(-1)
            b[].init(3)
            var p = RolePipeline[3, True](b, b)
            p.acquire()
            p.commit()
            res[] = buf[unsafe_offset=-2]
        """
    compiled = compile_source(Source("test.pdsl", textwrap.dedent(text)))
    assert isinstance(compiled, Compiled)
    ptx = compiled.ptx
    assert "+-8]" in ptx and "shared-" not in ptx


@pytest.mark.parametrize(
    ("ends", "turns"),
    [
        ("UInt64(2**64 - 1)", range(2**64 - 1)),
        ("Int64.MIN, Int64.MAX", range(-(2**63), 2**63 - 1)),
        ("UInt64(1), UInt64(2**64 - 1), UInt64(3)", range(1, 2**64 - 1, 3)),
    ],
)
def test_loops_of_more_turns_than_a_list_can_have_items(ends: str, turns: range) -> None:
    compiled = compile_source(Source("k.pdsl", KERNEL + f"    for i in range({ends}):\n        p[] = Int32(i)\n"))
    assert isinstance(compiled, Compiled)
    last = (turns[-1] + 2**31) % 2**32 - 2**31  # LLVM sees that only the last store stays
    assert f"st.global.b32 \t[%rd1], {last};" in compiled.ptx
