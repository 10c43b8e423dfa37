"""Constants that an instruction does not take are errors at the user's line, before any assembler sees them."""

import pytest
from elaborate_support import diagnostics, in_kernel, where

REJECTED = [
    ("named_barrier[64](16)", "E0614", "there is no named barrier 16"),
    ("named_barrier_arrive[64](-1)", "E0614", "there is no named barrier -1"),
    ("m[].init(0)", "E0615", "an mbarrier counts 1 to 1,048,575 arrivals, not 0"),
    ("m[].init(1048576)", "E0615", "an mbarrier counts 1 to 1,048,575 arrivals, not 1,048,576"),
    ("_ = m[].arrive(0)", "E0615", "an mbarrier counts 1 to 1,048,575 arrivals, not 0"),
    ("m[].expect_bytes(1048576)", "E0615", "an mbarrier counts up to 1,048,575 bytes, not 1,048,576"),
]


@pytest.mark.parametrize(("body", "code", "message"), REJECTED)
def test_constant_out_of_range(body: str, code: str, message: str) -> None:
    (problem,) = diagnostics(in_kernel(body))
    assert where(problem) == (code, 4, 5 + 4 * body.startswith("_ ="))
    assert problem.message == message


def test_size_of_a_bulk_copy() -> None:
    (problem,) = diagnostics("""\
        @kernel
        def k(src: Pointer[UInt8, MutAnyOrigin]):
            var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
            var buf = unsafe_stack_allocation[64, UInt8, address_space=.SHARED, alignment=16]()
            cp_async_bulk_shared_cta_global(buf, src, 40, bar)
        """)
    assert where(problem) == ("E0616", 5, 5)


def test_constants_in_range() -> None:
    body = "named_barrier[64](15)\nm[].init(1)\nm[].init(1048575)\n_ = m[].arrive(7)\nm[].expect_bytes(1048575)"
    assert diagnostics(in_kernel(body)) == []
