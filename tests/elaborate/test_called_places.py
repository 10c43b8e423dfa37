"""A place in a user's function that was expanded is told with the calls that lead there, also long after it was."""

from __future__ import annotations

import pytest

from ptxdsl import driver, tir
from ptxdsl.diagnostics import CompileError
from ptxdsl.options import Options
from ptxdsl.source import Source, Span

TEXT = """\
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var s = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment={alignment}]()
    wide(s)
    outer(s)
    res[unsafe_offset=0] = s[unsafe_offset=0]

def outer(s: Pointer[Float32, MutAnyOrigin, address_space=.SHARED]):
    wide(s)

def wide(s: Pointer[Float32, MutAnyOrigin, address_space=.SHARED]):
    s.unsafe_store[alignment=16](0, SIMD[DType.float32, 4](0))
"""


def _texts(span: Span) -> list[tuple[int, str]]:
    return [(call.line, name) for call, name in span.calls]


def test_operations_of_a_function_have_the_calls_that_lead_there() -> None:
    job = driver.Job(Source("k.pdsl", TEXT.format(alignment=16)), options=Options(check="off"))
    module = driver.run(job, "tir")
    stores = [op for op in tir.walk(module.kernels[0].body) if op.name == "store"]
    assert [(op.span.line, _texts(op.span)) for op in stores] == [
        (12, [(4, "wide")]),
        (12, [(9, "wide"), (5, "outer")]),
        (6, []),
    ]
    first, second, _ = stores
    assert first.span != second.span and first.span.plain == second.span.plain


def test_what_is_found_when_the_kernel_is_complete_is_told_once_with_the_call() -> None:
    with pytest.raises(CompileError) as raised:
        driver.compile_source(Source("k.pdsl", TEXT.format(alignment=4)))
    (found,) = raised.value.diagnostics
    assert (found.code, found.span.line) == ("E0617", 12)
    (span, label), *_ = found.notes
    assert (span.line, label) == (4, "in this call of `wide`")
