"""Imports between files: what a name of another file means, and cycles."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from elaborate_support import where
from semantics import RESULT

from ptxdsl.diagnostics import CompileError, Diagnostic, DiagnosticSink
from ptxdsl.elaborate import elaborate
from ptxdsl.imports import Loader
from ptxdsl.options import Options
from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse

FILES = {
    "beside.pdsl": """
        from .below.deep import depth
        comptime ANSWER = 42
        comptime _HIDDEN = 1
        def twice(x: Int32) -> Int32:
            return x + x
        @fieldwise_init
        struct Pair(TrivialRegisterPassable):
            var a: Int32
            var b: Int32
            def sum(self) -> Int32:
                return self.a + self.b + depth()
        """,
    "below/__init__.pdsl": "comptime INSIDE = 5\n",
    "below/deep.pdsl": """
        from .near import NEAR
        def depth() -> Int32:
            return Int32(NEAR)
        """,
    "below/near.pdsl": "comptime NEAR = 7\n",
    "ping.pdsl": """
        from pong import pong
        def ping[n: Int]() -> Int:
            comptime if n == 0:
                return 100
            else:
                return pong[n - 1]() + 1
        """,
    "pong.pdsl": """
        from ping import ping
        def pong[n: Int]() -> Int:
            comptime if n == 0:
                return 200
            else:
                return ping[n - 1]() + 1
        """,
    "egg.pdsl": "from hen import thing\n",
    "hen.pdsl": "from egg import thing\n",
    "one.pdsl": "from two import TWO\ncomptime ONE = TWO + 1\n",
    "two.pdsl": "from one import ONE\ncomptime TWO = ONE + 1\n",
    "below/up.pdsl": """
        from ..beside import ANSWER
        from beside import twice
        from .further.last import LAST
        def up() -> Int32:
            return twice(Int32(ANSWER + LAST))
        """,
    "below/further/last.pdsl": "from ..near import NEAR\nfrom ...beside import ANSWER\ncomptime LAST = NEAR + ANSWER\n",
    "below/further/away.pdsl": "from ....outside import x\n",
    "plain/alone.pdsl": "comptime ALONE = 9\n",
    "plain/other.pdsl": "from . import alone\ncomptime OTHER = alone.ALONE + 1\n",
    "below/bit.pdsl": "comptime ONE = 1\n",
    "bit.pdsl": "comptime TWO = 2\n",
    "bit/own.pdsl": "comptime MINE = 4\n",
    "math/own.pdsl": "comptime MINE = 5\n",
    "broken.pdsl": "def broken() -> Int32:\n    return missing\n",
    "loops.pdsl": "from loops import *\ncomptime SELF = 3\n",
}

Compile = Callable[[str], "tuple[list[object], list[Diagnostic]]"]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """What ``p[] = …`` stores in a kernel after the given imports, and what is wrong."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))

    def check(text: str) -> tuple[list[object], list[Diagnostic]]:
        from run_tir import run

        imports, _, value = text.rpartition("\n")
        source = f"{imports}\n@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32):\n    p[] = {value}\n"
        module = parse(Source(str(tmp_path / "main.pdsl"), source))
        try:
            result = elaborate(
                module, kernel=None, constants={}, options=Options(), loader=Loader(), sink=DiagnosticSink()
            )
        except CompileError as problem:
            return [], list(problem.diagnostics)
        return [event[2] for event in run(result.kernels[0], RESULT, 10)], []

    return check


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("from beside import twice\ntwice(n)", 20),
        ("from .beside import twice, ANSWER\ntwice(n) + ANSWER", 62),
        ("from beside import twice as double, ANSWER as A\ndouble(n) + A", 62),
        ("from beside import *\ntwice(n) + ANSWER", 62),
        ("import beside\nbeside.twice(n) + beside.ANSWER", 62),
        ("import beside as b\nb.twice(n) + b.Pair(n, 1).sum()", 38),
        ("from beside import Pair\nPair(n, 2).sum()", 19),
        ("from below import INSIDE\nn + INSIDE", 15),
        ("from below.deep import depth\ndepth()", 7),
        ("from .below.near import NEAR\nNEAR", 7),
        ("from ping import ping\nInt32(ping[3]())", 203),
        ("from pong import pong\nInt32(pong[4]())", 204),
        ("from loops import SELF\nSELF", 3),
        ("from beside import depth\ndepth()", 7),
        ("from broken import *\nn", 10),
        ("from math import ceildiv\nceildiv(n, 4)", 3),
        ("from std.math import ceildiv\nceildiv(n, 4)", 3),
        ("from max.gpu import thread_idx, barrier\nn", 10),
        ("from max.gpu.host import DeviceContext\nn", 10),
        ("from below.up import up\nup()", 2 * (42 + 7 + 42)),
        ("from below import up, INSIDE\nup.up() + INSIDE", 182 + 5),
        ("from plain import alone as a, other\na.ALONE + other.OTHER", 19),
        ("from . import beside\nbeside.ANSWER", 42),
        ("import below.near\nbelow.near.NEAR", 7),
        ("import below.near\nimport below.deep\nimport below\nbelow.deep.depth() + below.near.NEAR + below.INSIDE", 19),
        ("import below\nimport below.near\nbelow.near.NEAR + below.INSIDE", 12),
        ("import std.math\nstd.math.ceildiv(n, 4)", 3),
        ("from beside import twice\nfrom below import INSIDE as twice_more\ntwice(n) + twice_more", 25),
    ],
)
def test_values(compiled: Compile, text: str, value: int) -> None:
    assert compiled(text) == ([value], [])


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("from beside import thrice\nthrice(n)", ("E0204", 1, 20), "module `beside` has no `thrice`"),
        ("from beside import *\n_HIDDEN", ("E0201", 4, 11), "unknown name `_HIDDEN`"),
        ("import beside\ntwice(n)", ("E0201", 4, 11), "unknown name `twice`"),
        ("import beside\nbeside.thrice(n)", ("E0204", 4, 18), "the module has no `thrice`"),
        ("from egg import thing\nthing", ("E0203", 1, 17), "`thing` is imported in a cycle"),
        ("from one import ONE\nONE", ("E0402", 2, 16), "`ONE` is defined in terms of itself"),
        ("from broken import broken\nbroken()", ("E0201", 2, 12), "unknown name `missing`"),
        ("from besides import twice\ntwice(n)", ("E0250", 1, 6), "there is no module 'besides'"),
        ("from ..outside import x\nn", ("E0251", 1, 6), "module '..outside' is outside of the folder of the program"),
        (
            "from below.further.away import x\nx",
            ("E0251", 1, 6),
            "module '....outside' is outside of the folder of the program",
        ),
        ("from plain import alone, nothing\nn", ("E0250", 1, 6), "there is no module 'plain'"),
        ("from below import nothing\nnothing", ("E0204", 1, 19), "module `below` has no `nothing`"),
        (
            "from max.gpu.host import DeviceContext\nDeviceContext",
            ("E0207", 4, 11),
            "`DeviceContext` of `max.gpu.host` is for host code",
        ),
    ],
)  # fmt: skip
def test_rejected(compiled: Compile, text: str, place: tuple[str, int, int], message: str) -> None:
    _, (problem,) = compiled(text)
    assert (where(problem), problem.message) == (place, message)


def test_a_file_that_hides_a_module_of_the_library(compiled: Compile) -> None:
    _, (problem,) = compiled("from below.bit import ONE\nfrom bit import pop_count\npop_count(n) + ONE")
    assert (where(problem)[0], problem.message) == ("E0204", "module `bit` has no `pop_count`")
    assert problem.help is not None and problem.help.endswith("hides the library's `bit`: give it another name")


def test_a_folder_beside_a_module_of_the_library_leaves_no_trace_in_it(compiled: Compile) -> None:
    for _ in range(2):  # the library is kept from one compilation to the next
        imports = "import bit.own\nimport math.own\nimport math"
        assert compiled(f"{imports}\nmath.ceildiv(n, 4) + math.own.MINE") == ([3 + 5], [])
        _, (problem,) = compiled("import math\nmath.own.MINE")
        assert problem.message == "the module has no `own`"


def test_an_error_in_another_file_names_the_call(compiled: Compile) -> None:
    _, (problem,) = compiled("from broken import broken\nbroken()")
    assert problem.span is not None and problem.span.source.name.endswith("broken.pdsl")
    assert [(span.line, label) for span, label in problem.notes] == [(4, "in this call of `broken`")]


def kernels_of(path: Path, name: str | None) -> list[str]:
    source = Source(str(path), path.read_text())
    made = elaborate(
        parse(source), kernel=name, constants={}, options=Options(), loader=Loader(), sink=DiagnosticSink()
    )
    return [kernel.name for kernel in made.kernels]


@pytest.mark.parametrize("imports", ["from others import first", "from others import *"])
def test_kernels_that_are_imported_are_those_of_their_own_file(tmp_path: Path, imports: str) -> None:
    """Unless one is named."""
    head = "(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 1\n"
    (tmp_path / "others.pdsl").write_text(f"@kernel\ndef first{head}\n@kernel\ndef second{head}")
    main = tmp_path / "main.pdsl"
    main.write_text(f"{imports}\n\ndef own{head}")  # the only def that can be a kernel
    assert kernels_of(main, None) == ["own"]
    assert kernels_of(main, "first") == ["first"]
    main.write_text(f"{imports}\n")
    with pytest.raises(CompileError, match="there is no kernel in this file"):
        kernels_of(main, None)


def test_origins_are_named_in_types(compiled: Compile) -> None:
    struct = (
        "@fieldwise_init\nstruct Row[origin: Origin](TrivialRegisterPassable):\n    var p: Pointer[Int32, Self.origin]"
    )
    use = "def f(row: Row[ImmutAnyOrigin]) -> Int32:\n    return row.p[]"
    _, (problem,) = compiled(f"{struct}\n\n{use}\nf(Row[MutAnyOrigin](p))")
    assert problem.message == "expected Row[ImmutAnyOrigin], found Row[MutAnyOrigin]"
