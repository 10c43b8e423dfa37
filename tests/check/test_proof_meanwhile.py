"""What changes meanwhile is one value for nobody: memory that the kernel writes through whatever pointer, or that the
grid before it may still write; and what relaxed operations on barriers do not tell."""

from __future__ import annotations

import pytest
from pipeline_kernels import kernel
from proofs import verdict

COUNTED = """
    if t < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(Int32(src[0])):
            p.acquire()
            p.commit()
    elif t < 64:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(Int32(src[0])):
            c.wait()
            c.release()
"""
COUNTED = COUNTED.replace("Int32(src[0])", "src.bitcast[Int32]()[0]")


def counted(before: str = "", last: str = "pass", consumer: str = "") -> str:
    """Two roles that read how often they go round, a third one that writes, what all do before, the consumer alone."""
    roles = COUNTED.replace("        var c =", f"        {consumer}\n        var c =") if consumer else COUNTED
    return kernel(f"{before}\n{roles}    else:\n" + last.replace("\n", "\n        ").join(("        ", "\n")), 96)


CHANGES = {
    "by a pointer that is chosen": "var q = src if n > 0 else src.unsafe_offset(1)\nq[0] = 7",
    "by a pointer that goes on": "var q = src\nfor _ in range(n):\n    q[0] = 7\n    q = q + 1",
    "by an atomic operation": "var q = src\nif n > 3:\n    q = src.unsafe_offset(n)\n_ = fetch_add(q, 1)",
}


@pytest.mark.parametrize("name", CHANGES)
def test_memory_that_is_written_meanwhile(name: str) -> None:
    found = verdict(counted(last=CHANGES[name]))
    assert (
        found.verdict == "not provable here" and "a loop's trip count depends on data" in found.diagnostics[0].message
    )


def test_memory_that_nobody_writes() -> None:
    assert verdict(counted(last="var q = res if n > 0 else res.unsafe_offset(1)\nq[0] = 7")).verdict == "proved"


WAIT = "wait_on_dependent_grids()"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (counted(before=f"    {WAIT}"), "proved"),
        (counted(consumer=WAIT), "not provable here"),
        (counted(before=f"    if n > 3:\n        {WAIT}"), "not provable here"),
        (counted(before=f"    {WAIT}", consumer=WAIT), "proved"),
    ],
)
def test_memory_that_the_grid_before_writes(text: str, expected: str) -> None:
    """What lies there before that grid has ended is another value than behind the wait."""
    assert verdict(text).verdict == expected


RELAXED = """
    if t == 0:
        bars[0].expect_bytes(16)
    elif t == 32:
        buf[0] = 1
        {}
    elif t >= 64:
        bars[0].wait(0)
        res[lane] = buf[0]
"""
TELLS = "        bars[0].expect_bytes_relaxed(16)\n        bars[0].complete_bytes(16)\n        _ = bars[0].arrive()"


@pytest.mark.parametrize(
    ("count", "operation", "kinds"),
    [
        (1, "bars[0].complete_bytes(16)", ("slot read before full",)),
        (2, "bars[0].complete_bytes(16)\n        _ = bars[0].arrive()", ()),
        (2, "_ = bars[0].arrive()\n        bars[0].complete_bytes(16)", ()),
    ],
)
def test_bytes_that_a_thread_counts_tell_nothing(count: int, operation: str, kinds: tuple[str, ...]) -> None:
    """PTX ISA: ``mbarrier.complete_tx`` is relaxed."""
    assert verdict(kernel(RELAXED.format(operation), 96, str(count))).kinds == kinds
