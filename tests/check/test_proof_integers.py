"""Trip counts of other types than that of the parameter: what is narrowed, what is taken as unsigned."""

from __future__ import annotations

import pytest
from pipeline_kernels import ring
from proofs import verdict

# What two roles count, and a launch in which they do not count alike; None where there is none.
COUNTS = {
    "the low byte": ("Int32(Int8(n))", "n", "n = 128"),
    "the low byte without a sign": ("Int32(UInt8(n))", "n", "n = 256"),
    "the low byte with and without a sign": ("Int32(Int8(n))", "Int32(UInt8(n))", "n = 128"),
    "a sum of bytes of both": ("Int32(UInt8(n) + UInt8(3))", "Int32(UInt8(n) + UInt8(3))", None),
    "a byte of both": ("Int32(Int8(n))", "Int32(Int8(n))", None),
    "half of it": ("n >> 1", "n // 2", None),
    "half of it without a sign": ("n >> 1", "Int32(UInt32(n) >> 1)", "n = -1"),
    "as many of a larger type": ("Int32(Int64(n))", "n", None),
    "a rest without a sign": ("n % 8", "Int32(UInt32(n) % 8)", None),
    "a rest with the dividend's sign": ("n % 8", "n - n / 8 * 8", "n = -1"),
    "twice as many": ("n << 1", "n * 2", None),
    "down to the negative": ("-n", "0, n, -1", None),
    "the lesser without a sign": ("n", "Int32(min(UInt32(n), UInt32(8)))", "n = -1"),
    "the lesser of bytes without a sign": ("Int32(min(UInt8(n), UInt8(150)))", "min(Int32(UInt8(n)), 150)", None),
    "a range of bytes without a sign": ("UInt8(n)", "Int32(UInt8(n))", None),
    "a range of 16 bits without a sign": ("UInt16(n)", "Int32(UInt16(n))", None),
    "bytes compared without a sign": (
        "(Int32(1) if UInt8(n) < UInt8(150) else Int32(0))",
        "(Int32(1) if Int8(n) < 0 else Int32(0))",
        "n = ",
    ),
}


def _counted(producer: str, consumer: str) -> str:
    """Turns may be counted in any type: nothing is indexed by them."""
    return ring(trips=producer, consumer_trips=consumer).replace("unsafe_offset=i * 32 + lane", "unsafe_offset=lane")


@pytest.mark.parametrize("name", COUNTS)
def test_what_roles_count(name: str) -> None:
    one, other, launch = COUNTS[name]
    both = [verdict(_counted(a, b)) for a, b in ((one, other), (other, one))]
    if launch is None:
        assert [(found.verdict, found.assumptions) for found in both] == [("proved", ())] * 2
    else:
        assert "proved" not in [found.verdict for found in both]
        assert any(f"it shows with {launch}" in (d.help or "") for found in both for d in found.diagnostics)


def test_a_parameter_that_must_not_be_negative_is_named() -> None:
    """With n = -1 nobody fills the stage for which the consumer waits before its loop."""
    peeled = ("c.wait()", "c.release()")
    found = verdict(ring(trips="n + 1", consumer_before=peeled, consumer_trips="n"))
    assert (found.verdict, found.assumptions) == ("proved", ("if n is not negative",))
    alike = verdict(ring(trips="n + 1", consumer_trips="n + 1"))
    assert (alike.verdict, alike.assumptions) == ("proved", ())


def restarted(turns: int) -> str:
    """Both roles begin their ring anew for each tile: right if the turns of a tile are whole rounds of both phases."""
    slot = "buf[unsafe_offset=Int32(own.state.index()) * 32 + lane]"
    loop = f"for _ in range({turns}):"
    producer = ("var own = RolePipeline[2, True](bars, bars.unsafe_offset(2))", loop, "    own.acquire()")
    consumer = ("var own = RolePipeline[2, False](bars, bars.unsafe_offset(2))", loop, "    own.wait()")
    producer += (f"    {slot} = 1", "    own.commit()")
    consumer += (f"    res[unsafe_offset=lane] = {slot}", "    own.release()")
    return ring(producer, consumer)


@pytest.mark.parametrize(("turns", "right"), [(4, True), (6, False), (64, True), (62, False), (300, True)])
def test_turns_of_a_long_loop_are_counted_where_it_hangs_on_them(turns: int, right: bool) -> None:
    assert verdict(restarted(turns)).verdict == ("proved" if right else "fault")


@pytest.mark.parametrize(("filled", "read", "right"), [(100, 100, True), (100, 101, False), (102, 100, True)])
def test_long_loops_of_two_roles_are_compared(filled: int, read: int, right: bool) -> None:
    assert verdict(ring(trips=f"Int32({filled})", consumer_trips=f"Int32({read})")).verdict == (
        "proved" if right else "fault"
    )
