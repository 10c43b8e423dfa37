"""Products that add to tensor memory which nobody has written, as counters and the launch have it."""

from __future__ import annotations

import pytest
from proofs import ROOT, verdict

CONSTANT = (ROOT / "tests" / "check" / "faulty" / "24_first_product_adds.pdsl").read_text(encoding="utf-8")
PRODUCT = "        tcgen05_mma(result, left, right)\n"


def _verdict(*lines: str):
    """Of a kernel with these lines in the place of its one product, and a launch value ``n``."""
    assert CONSTANT.count(PRODUCT) == 1
    text = CONSTANT.replace(PRODUCT, "".join(f"        {line}\n" for line in lines))
    return verdict(text.replace("MutAnyOrigin]):", "MutAnyOrigin], n: Int32):"), arch="sm_100a")


RIGHT = {
    "the first turn does not add": ("for i in range(4):", "    tcgen05_mma(result, left, right, i > 0)"),
    "the first turn of a range that begins anywhere": (
        "for i in range(n, n + 4):", "    tcgen05_mma(result, left, right, i != n)",
    ),
    "a truth that the first turn changes": (
        "var adds = False", "for i in range(4):", "    tcgen05_mma(result, left, right, adds)", "    adds = True",
    ),
    "another product comes before for the same launch": (
        "if n == 7:", "    tcgen05_mma(result, left, right, False)",
        "for i in range(4):", "    tcgen05_mma(result, left, right, i > 0 or n == 7)",
    ),
    "what is written may be added to by anybody": (
        "tcgen05_mma(result, left, right, False)", "tcgen05_mma(result, left, right, res[] != 0)",
    ),
}  # fmt: skip

# With the value of n for which it shows, where it hangs on that.
WRONG = {
    "a launch value": (("tcgen05_mma(result, left, right, n != 0)",), "n = 1"),
    "the number of the block": (("tcgen05_mma(result, left, right, block_idx.x > 0)",), "block_idx.x = 1"),
    "the turn before the first": (("for i in range(4):", "    tcgen05_mma(result, left, right, i >= 0)"), None),
    "the second turn in the place of the first": (
        ("for i in range(4):", "    tcgen05_mma(result, left, right, i != 1)"), None,
    ),
    "a truth that begins as it should end": (
        ("var adds = True", "for i in range(4):", "    tcgen05_mma(result, left, right, adds)", "    adds = False"),
        None,
    ),
    "a turn that is not there for every launch": (
        ("for i in range(4):", "    tcgen05_mma(result, left, right, i > Int(n))"), "n = -1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("lines", RIGHT.values(), ids=RIGHT)
def test_it_does_not_add(lines: tuple[str, ...]) -> None:
    found = _verdict(*lines)
    assert (found.verdict, found.assumptions) == ("proved", ())


@pytest.mark.parametrize(("lines", "launch"), WRONG.values(), ids=WRONG)
def test_it_adds(lines: tuple[str, ...], launch: str | None) -> None:
    found = _verdict(*lines)
    (said,) = found.diagnostics
    assert found.kinds == ("slot read before full",)
    assert "is added to by thread 0 where nobody has ever written it" in said.message
    assert said.span is not None and "tcgen05_mma(" in said.span.source.line(said.span.line)
    assert launch is None or f"it shows with {launch}" in (said.help or "")


def test_what_data_decides_is_assumed() -> None:
    found = _verdict("tcgen05_mma(result, left, right, res[unsafe_offset=thread_idx.x] != 0)")
    line = 1 + CONSTANT[: CONSTANT.index(PRODUCT)].count("\n")
    assert found.verdict == "proved"
    assert found.assumptions == (f"if the first product at line {line} does not add to what is there",)
