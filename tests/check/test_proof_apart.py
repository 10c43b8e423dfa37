"""Threads of a role that arrive at different barriers: each tells of what the threads that arrive there have done; and
arrivals that may fall into a phase that somebody has waited for."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

EARLY, OVER = ("slot read before full",), ("slot overwritten before release",)
COPY = "from async_copy import async_copy, async_copy_arrive\n\n@kernel"


def roles(writer: str, reader: str) -> str:
    """Warp 0, or warps 0 and 1, and the last of three warps."""
    return f"if t < 64:\n    {writer}\nelse:\n    {reader}".replace("; ", "\n    ")


HALVES = "buf[t] = 1; _ = bars[t % 2].arrive()"
WARPS = "buf[t] = 1; _ = bars[t // 32].arrive()"
BOTH = "bars[0].wait(0); bars[1].wait(0); "
ONE = "bars[0].wait(0); {}; bars[1].wait(0)"
READ = "res[lane] = buf[{}]"
ROWS = "buf.unsafe_offset(t * 32), src.unsafe_offset(t * 32), 128, bars.unsafe_offset(t)"
COPIES = f"if t < 2:; {{4}}bars[t].expect_bytes(128); {{4}}cp_async_bulk_shared_cta_global({ROWS})".replace(
    "{4}", "    "
)
STORED = "async_copy[4](src.unsafe_offset(t), buf.unsafe_offset(t)); async_copy_arrive(bars.unsafe_offset(t % 2))"
GIVEN = "buf[t] = 1; _ = bars[2].arrive(); bars[t // 32].wait(0); buf[{}] = 2"
TAKEN = "bars[2].wait(0); res[lane] = buf[lane] + buf[32 + lane]; _ = bars[lane % 2].arrive()"
APART = {
    "lanes, both waited for": (roles(HALVES, BOTH + READ.format("lane")), "32", ()),
    "lanes, one waited for": (roles(HALVES, ONE.format(READ.format("lane"))), "32", EARLY),
    "lanes, the own one waited for": (roles(HALVES, "bars[lane % 2].wait(0); " + READ.format("lane ^ 2")), "32", ()),
    "lanes, the other one waited for": (
        roles(HALVES, "bars[lane % 2].wait(0); " + READ.format("lane ^ 1")),
        "32",
        EARLY,
    ),
    "warps, the right one waited for": (roles(WARPS, "bars[1].wait(0); " + READ.format("32 + lane")), "32", ()),
    "warps, the other one waited for": (roles(WARPS, "bars[1].wait(0); " + READ.format("lane")), "32", EARLY),
    "bulk copies, both waited for": (roles(COPIES, BOTH + READ.format("32 + lane")), "1", ()),
    "bulk copies, one waited for": (roles(COPIES, ONE.format(READ.format("32 + lane"))), "1", EARLY),
    "cp.async, both waited for": (roles(STORED, BOTH + READ.format("lane")), "32", ()),
    "cp.async, one waited for": (roles(STORED, ONE.format(READ.format("lane"))), "32", EARLY),
    "stages given back by half a warp": (roles(GIVEN.format("t"), TAKEN), "16 if i < 2 else 64", OVER),
}


@pytest.mark.parametrize("name", APART)
def test_arrivals_at_different_barriers(name: str) -> None:
    body, count, kinds = APART[name]
    text = kernel(body, 96, count, init_fence=True).replace("@kernel", COPY, 1)
    assert verdict(text).kinds == kinds


MORE = """
if t >= 16:
    buf[t] = 1
    _ = bars[0].arrive()
if t == 0:
    bars[0].wait(0)
    res[t] = buf[40]
"""


@pytest.mark.parametrize(("count", "expected"), [("48", "proved"), ("32", "fault")])
def test_arrivals_after_a_phase_that_was_waited_for(count: str, expected: str) -> None:
    """With 48 arrivals for a count of 32, those of other threads may have made up the phase."""
    assert verdict(kernel(MORE, 64, count)).verdict == expected
