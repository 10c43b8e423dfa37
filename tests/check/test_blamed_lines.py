"""Where a fault is shown and what repair is told, in kernels whose one mistake is known."""

from __future__ import annotations

import pytest
from pipeline_kernels import ACQUIRE, COMMIT, READ, RELEASE, WAIT, WRITE, kernel, ring
from proofs import verdict

from ptxdsl.diagnostics import Diagnostic


def _fault(text: str) -> Diagnostic:
    found = verdict(text)
    assert found.verdict == "fault"
    return found.diagnostics[0]


def _shown(fault: Diagnostic) -> list[str]:
    return [span.text for span in (fault.span, *(span for span, _ in fault.notes)) if span is not None]


OTHER_READ = "var z = buf[unsafe_offset=2048 + lane]"  # of bytes that nobody writes after the barrier


@pytest.mark.parametrize("reads", [(OTHER_READ, READ), (READ, OTHER_READ)])
def test_of_the_reads_between_two_barriers_that_of_the_overwritten_bytes_is_shown(reads: tuple[str, ...]) -> None:
    """Without the consumer's release before the last read the producer overwrites it; the other read is harmless."""
    text = ring((ACQUIRE, WRITE, COMMIT), (WAIT, RELEASE, *reads))
    shown = _shown(_fault(text))
    assert "Int32(c.state.index()) * 32 + lane" in shown
    assert not any("2048 + lane" in text for text in shown)


FENCE = """
if t == 0:
    var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
    for i in range(n):
        p.acquire()
        var full = p.producer_mbar()
        full[].expect_bytes(128)
        cp_async_bulk_shared_cta_global(buf.unsafe_offset(p.state.index() * 32), src.unsafe_offset(i * 32), 128, full)
        p.step()
elif t >= 32:
    var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
    var sum: Float32 = 0
    for i in range(n):
        c.wait()
        sum += src[unsafe_offset=lane] + buf[unsafe_offset=2048 + lane]
        sum += buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]
        c.release()
    res[unsafe_offset=lane] = sum
"""


def test_a_missing_fence_is_told_of_the_read_of_the_copys_bytes() -> None:
    text = kernel(FENCE, count="1 if i < 2 else 32", init_fence=True)
    text = text.replace("    barrier()\n", "    buf[unsafe_offset=2048 + Int32(thread_idx.x)] = 1\n    barrier()\n", 1)
    fault = _fault(text)
    assert fault.code == "E1209"
    assert [span.text for span, label in fault.notes if label.startswith("read here")] == [
        "buf[unsafe_offset=Int32(c.state.index()) * 32 + lane]"
    ]


FITTING = "RolePipeline[2, False](bars, bars.unsafe_offset(2))"


@pytest.mark.parametrize(
    ("consumer", "note", "repair"),
    [
        ("RolePipeline[1, False](bars, bars.unsafe_offset(2))", "2 stages here, the consumer 1", "stages"),
        ("RolePipeline[2, False](bars.unsafe_offset(2), bars)", "bases in different order", "same bases"),
        ("RolePipeline[2, False](bars, bars.unsafe_offset(4))", "second base is not the consumer's", "same bases"),
        ("RolePipeline[2, False](bars.unsafe_offset(4), bars.unsafe_offset(2))", "first base is not", "same bases"),
    ],
)  # fmt: skip
def test_ends_that_do_not_fit_are_told(consumer: str, note: str, repair: str) -> None:
    fault = _fault(ring().replace(FITTING, consumer))
    assert note in fault.notes[0][1] and fault.notes[0][0].text == "RolePipeline[2, True](bars, bars.unsafe_offset(2))"
    assert fault.notes[1][0].text == consumer
    assert repair in (fault.help or "")


def test_ends_that_fit_are_not_spoken_of() -> None:
    fault = _fault(ring((ACQUIRE, WRITE, f"if i != 3: {COMMIT}")))
    assert not any("base" in label or "stages" in label for _, label in fault.notes)


def test_what_is_no_stage_is_given_a_value_not_filled_between_acquire_and_commit() -> None:
    """With n = 0 the loop that writes the sums makes no turn; the way to the read has no ring."""
    sums = kernel("""
        for i in range(n):
            buf[unsafe_offset=t] = Float32(i)
            barrier()
        res[unsafe_offset=t] = src[unsafe_offset=t] + buf[unsafe_offset=63 - t]
    """)
    fault = _fault(sums)
    assert fault.code == "E1207" and fault.span is not None and fault.span.text == "buf[unsafe_offset=63 - t]"
    assert "every path" in (fault.help or "") and "loop" in (fault.help or "") and "acquire" not in (fault.help or "")
    stage = _fault(ring((ACQUIRE, f"if i != 3: {WRITE}", COMMIT)))
    assert stage.code == "E1207" and "acquire" in (stage.help or "")
