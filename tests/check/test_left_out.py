"""What a fault comes from where something is left out, and what an array does not have."""

from __future__ import annotations

import pytest
from pipeline_kernels import ACQUIRE, COPY, READ, RELEASE, WAIT, WRITE, block, copies, ring
from proofs import verdict

LAST = {"p": (WRITE, "_ = p.producer_mbar()[].arrive()", COPY), "c": (READ,)}
FILL = (ACQUIRE, WRITE, "_ = p.producer_mbar()[].arrive()", "p.step()")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ring(FILL[:-1]), "waits for the same phase in every turn: nothing in the loop steps to the next one"),
        (ring(FILL, (WAIT, READ)), "does not give the stage back, and so waits for the same phase in every turn"),
        (ring(FILL, (READ, RELEASE)), "a stage is given back here, and nothing waits for it before"),
    ],
    ids=["step", "release", "wait"],
)
def test_a_step_that_is_left_out_is_named(text: str, said: str) -> None:
    found = verdict(text)
    assert found.verdict == "fault"
    assert said in [text for _, text in found.diagnostics[0].notes]


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (ring((ACQUIRE, WRITE)), "p.commit()"),
        (ring((ACQUIRE, WRITE, "p.step()")), "p.commit()"),
        (ring(consumer=(WAIT, READ)), "c.release()"),
        (ring(consumer=(WAIT, READ, "c.step()")), "c.release()"),
        (ring(FILL[:-1]), "p.step()"),
        (copies().replace("p.step()", "pass"), "p.step()"),
        (copies(consumer=(WAIT, READ)), "c.release()"),
    ],
    ids=["commit", "commit for step", "release", "release for step", "arrives by hand", "announces", "copies"],
)
def test_the_step_that_is_offered_mends_the_kernel(text: str, mended: str) -> None:
    help = verdict(text).diagnostics[0].help
    assert help is not None and f"`{mended}`" in help
    assert ("in place of `step()`" in help) == ("arrives" in help and f"{mended[0]}.step()" in text)
    end = mended[0]
    lines = [line for line in text.splitlines() if line.strip() not in (f"{end}.step()", "pass")]
    last = max(n for n, line in enumerate(lines) if line.strip() in LAST[end])
    indent = lines[last][: -len(lines[last].lstrip())]
    added = ["fence_proxy_async()"] * ("cp_async" in text and end == "c") + [mended]
    lines[last + 1 : last + 1] = [indent + line for line in added]
    assert verdict("\n".join(lines) + "\n").verdict == "proved"


@pytest.mark.parametrize("at", ["64", "t + 1", "t * 2"])
def test_an_index_that_no_launch_keeps_in_its_array(at: str) -> None:
    """``buf`` has 64 elements."""
    for write in (
        f"buf[unsafe_offset={at}] = 1",
        f"buf[unsafe_offset=t] = 1\n    barrier()\n    res[] = buf[unsafe_offset={at}]",
    ):
        found = verdict(block(*write.split("\n    ")))
        assert (found.verdict, found.kinds) == ("fault", ("stale stage index",))
        assert found.diagnostics[0].message.startswith(
            "stale stage index: `buf` has 64 elements, and this accesses element"
        )
    assert verdict(block("buf[unsafe_offset=t] = 1")).verdict == "proved"
