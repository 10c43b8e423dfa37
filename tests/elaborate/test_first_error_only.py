"""What follows from an error is not reported again, and what does nothing is an error."""

import textwrap

import pytest
from elaborate_support import diagnostics, in_kernel, where

from ptxdsl.diagnostics import DiagnosticSink
from ptxdsl.elaborate import check_module
from ptxdsl.imports import Loader
from ptxdsl.options import Options
from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse


def checked(text: str) -> list[tuple[str, int]]:
    """Codes and lines of what ``ptxdsl check`` says."""
    sink = DiagnosticSink()
    module = parse(Source("test.pdsl", textwrap.dedent(text)))
    check_module(module, options=Options(), loader=Loader(), sink=sink)
    return [where(problem)[:2] for problem in sink.items]


TILES = "from layout import SharedTile, dynamic_shared\ncomptime F32 = DType.float32\n"
FOLLOW_UPS = [
    "var i = nothing\nm[unsafe_offset=i].init(1)",
    "var v = nothing\nfor i in range(v):\n    m[].init(1)",
    "var v = nothing\nvar p = RolePipeline[3, True](m, m.unsafe_offset(v))\np.acquire()",
    "var a = Array[Int32, 4](fill=0)\nvar i = nothing\na[i] = 3\nvar b = a[i] + 1",
    "var s = nothing\ns += 1\nprint(s, min(s, 3))",
    "var f = nothing\nf(1)\nvar g = f(2) * 3",
    "var x: Int32\nx = nothing\nvar y = x + 1",
    "var y = nothing\nvar x: Int32\nx = y\nprint(x)",
    "var x: Int32\nif n > 3:\n    x = nothing\nelse:\n    x = 2\nprint(x)",
    "var x: Int32\nif nothing:\n    x = 2\nprint(x)",
    "var x: Int32\nwhile n < nothing:\n    x = 2\nprint(x)",
    "var a: Array[Int32, 4]\na[0] = nothing\na[1] = 1\na[n] = 2\nvar b = a\nprint(a[0] + b[n], a[1])",
    "comptime N = nothing + 1\nvar v = SIMD[DType.float32, N](0)\nv[0] = 1\nvar w = v + v",
    "comptime N = nothing\ncomptime assert N > 3, 'N'\nm[].init(N)",
    "comptime N = nothing\nvar x = block_sum[block_size=N](Float32(n))\nx += 1",
    "comptime N = nothing\ncomptime for i in range(N):\n    m[].init(i)",
    "comptime T = nothing\nvar x: T = 3\nvar y: Int32 = x",
    f"{TILES}comptime T = SharedTile[F32, nothing, 32]\nvar t = T(dynamic_shared[T.bytes]())\nvar u = t[0, 0]",
    f"{TILES}comptime T = SharedTile[F32, 8, 32, swizzle=nothing.X]\nvar p = dynamic_shared[3 * T.bytes]()",
]


@pytest.mark.parametrize("body", FOLLOW_UPS)
def test_only_the_first_error_is_told(body: str) -> None:
    (problem,) = diagnostics(in_kernel(body))
    assert problem.code == "E0201" and problem.message == "unknown name `nothing`"


NOT_CALLED = [
    ("barrier", "barrier"),
    ("var p = RolePipeline[1](m, m.unsafe_offset(1))\np.commit", "p.commit"),
    ("print", "print"),
]


@pytest.mark.parametrize(("body", "name"), NOT_CALLED)
def test_a_function_that_is_not_called(body: str, name: str) -> None:
    (problem,) = diagnostics(in_kernel(body))
    assert where(problem) == ("E0347", 4 + body.count("\n"), 5)
    assert problem.message == f"`{name}` is not called" and problem.help == f"write `{name}()`"


def test_a_field_without_self() -> None:
    (problem,) = diagnostics("""\
        @fieldwise_init
        struct Square(TrivialRegisterPassable):
            var side: Int32

            def area(self) -> Int32:
                return side * side

        @kernel
        def k(res: Pointer[Int32, MutAnyOrigin]):
            res[] = Square(3).area()
        """)
    assert (problem.message, problem.help) == ("unknown name `side`", "write `self.side`")


def test_a_method_as_the_target_of_an_assignment() -> None:
    (problem,) = diagnostics(in_kernel("var c = RolePipeline[2, False](m, m.unsafe_offset(2))\nc.state.index = 1"))
    assert where(problem) == ("E0317", 5, 13)
    assert problem.message == "`index` is a method of PipelineState[2]: it cannot be assigned"
    assert problem.help == "its fields are `_index`, `_phase`, `_count`"


def test_check_looks_into_methods_and_functions_that_nobody_calls() -> None:
    text = """\
        struct Pair(TrivialRegisterPassable):
            var a: Int32
            var b: Int32

            def __init__(out self, a: Int32):
                self.a = a

            def sum(self) -> Int32:
                return self.a + c

            @staticmethod
            def none() -> Int32:
                pass

        def unused(x: Int32) -> Int32:
            return nonsense
        """
    assert checked(text) == [("E0210", 5), ("E0201", 9), ("E0327", 12), ("E0201", 16)]


def test_there_is_an_end_to_the_errors_of_a_text():
    lines = "".join(f"    p[{i}] = q{i}\n" for i in range(200))
    head = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n"
    of_function = f"def f(p: Pointer[Int32, MutAnyOrigin]):\n{lines}{head}    f(p)\n"
    of_many = "".join(f"def f{i}() -> Int32:\n    return q{i}\n" for i in range(200))
    for text, step in ((head + lines, 1), (of_function, 1), (of_many + head + lines, 2)):
        found = checked(text)
        first = next(number for number, line in enumerate(text.splitlines(), 1) if "q0" in line)
        assert found == [("E0201", first + step * i) for i in range(50)]
