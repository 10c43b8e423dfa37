"""What findings say that lines alone do not: which of two calls or turns comes first, what a wait is for."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

TWICE = """\
def total(v: Float32, s: Pointer[Float32, MutAnyOrigin, address_space=.SHARED]) -> Float32:
    s[thread_idx.x] = v
    barrier()
    return s[127 - thread_idx.x]

@kernel(threads=128)
def k(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var s = stack_allocation[128, Float32, address_space=.SHARED]()
    {}
"""


CALLS = "var a = total(1.0, s)\n    res[thread_idx.x] = a + total(2.0, s)"
TURNS = "for i in range(n):\n        res[i * 128 + Int32(thread_idx.x)] = total(1.0, s)"
LINES = "s[thread_idx.x] = 1\n    res[thread_idx.x] = s[127 - thread_idx.x]"


@pytest.mark.parametrize(
    ("body", "when"), [(CALLS, "in an earlier call"), (TURNS, "in the turn before"), (LINES, "by warps 0 to 3")]
)
def test_which_of_two_accesses_is_the_first(body: str, when: str) -> None:
    found = verdict(TWICE.format(body))
    assert found.kinds == ("data race",)
    (note,) = (text for _, text in found.diagnostics[0].notes if not text.startswith("in this call of"))
    assert note.endswith(when)


def test_a_wait_that_a_fresh_barrier_lets_through() -> None:
    body = """
    if t < 32:
        bars[unsafe_offset=0].arrive()
    else:
        bars[unsafe_offset=0].wait({})
        res[unsafe_offset=t] = 1
    """
    assert verdict(kernel(body.format(0))).verdict == "proved"
    found = verdict(kernel(body.format(1)))
    assert found.kinds == ("wrong parity",)
    assert found.diagnostics[0].span is not None and found.diagnostics[0].span.text.endswith(".wait(1)")
    assert "before any of its phases is complete" in found.diagnostics[0].message


def test_rings_that_overlap() -> None:
    """The second ring begins at the second stage of the first."""
    body = """
    var p = RolePipeline[2, True](bars, bars + 2)
    var c = RolePipeline[2, False](bars, bars + 2)
    if t < 32:
        if elect_one_sync():
            for i in range(n):
                p.acquire()
                p.producer_mbar()[].expect_bytes(256)
                cp_async_bulk_shared_cta_global(buf + Int32(p.state.index()) * 32, src, 128, p.producer_mbar())
                cp_async_bulk_shared_cta_global(buf + 32 + Int32(p.state.index()) * 32, src, 128, p.producer_mbar())
                p.step()
    else:
        for i in range(n):
            c.wait()
            res[unsafe_offset=t] = buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]
            c.release()
    """
    found = verdict(kernel(body, count="1 if i < 2 else 32", init_fence=True))
    assert found.kinds == ("slot overwritten before release",)
    assert "two copies write the same bytes" in found.diagnostics[0].message


MEET = """\
@kernel(threads=96)
def k(res: Pointer[Float32, MutAnyOrigin]):
    var t = thread_idx.x
    {}
    res[t] = 1
"""


@pytest.mark.parametrize(
    ("body", "message", "notes"),
    [
        (
            "if t < 32:\n        named_barrier[64](1)\n    else:\n        named_barrier[96](1)",
            "named barrier 1 is used for 96 threads here, and for 64 by others at the same time",
            ["warp 0 waits here, for 64 threads"],
        ),
        ("named_barrier[64](2)", "96 threads come to named barrier 2, which is for 64", []),
        (
            "if t < 32:\n        named_barrier[64](3)",
            "warp 0 waits at `named_barrier`: 32 of its 64 threads come to it; warps 1 to 2 have ended",
            [],
        ),
    ],
)
def test_counts_of_named_barriers_are_told_with_their_places(body: str, message: str, notes: list[str]) -> None:
    (fault,) = verdict(MEET.format(body)).diagnostics
    assert message in fault.message
    assert [note for _, note in fault.notes] == notes


def test_operations_have_the_names_by_which_the_text_calls_them() -> None:
    found = verdict(kernel("bars[unsafe_offset=0].wait(2)")).diagnostics[0]
    assert "`wait` gets 2 for a parity" in found.message
    found = verdict(kernel("if t == 1:\n    _ = bars.unsafe_offset(20)[].arrive()")).diagnostics[0]
    assert "`arrive` uses a barrier that does not exist" in found.message
