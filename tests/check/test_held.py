"""Values that lie in shared memory and decide where roles go: what must not be taken for one value."""

from __future__ import annotations

import pytest
from pipeline_kernels import block
from proofs import verdict

DRAWN = (
    "var next = unsafe_stack_allocation[2, Int32, address_space=.SHARED]()",
    "while True:",
    "    if t == 0:",
    "        next[] = fetch_add(counter, 1)",
    "    barrier()",
    "    var mine = next[]",
    "    barrier()",
    "    if mine >= n:",
    "        break",
    "    buf[unsafe_offset=t] = 1",
    "    barrier()",
    "    res[unsafe_offset=t] = buf[unsafe_offset=63 - t]",
)


def kernel(*changes: tuple[str, str]) -> str:
    text = block(*DRAWN).replace("n: Int32", "counter: Pointer[Int32, MutAnyOrigin], n: Int32")
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    return text


SECOND = ("        var mine = next[]\n        barrier()\n", "        var mine = next[]\n")
LAST = ("        barrier()\n        res", "        res")


def test_a_number_that_one_thread_draws() -> None:
    assert verdict(kernel()).verdict == "proved"
    assert verdict(kernel(("fetch_add(counter, 1)", "counter[]"))).verdict == "proved"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ([LAST], "data race"),
        ([SECOND, LAST], "data race"),
        ([("        barrier()\n        var mine", "        var mine")], "data race"),
        ([("mine >= n", "mine >= n - t // 32")], "divergent collective"),
        ([("    if t == 0:", "    if t < 2:")], None),
        ([("        if t == 0:\n            next[]", "        next[]")], None),
        ([("mine = next[]", "mine = next[unsafe_offset=t // 32]")], None),
    ],
    ids=[
        "read late",
        "no second barrier",
        "no first barrier",
        "a warp leaves",
        "two draw",
        "all draw",
        "two words",
    ],
)
def test_what_is_not_one_value_is_not_proved(changes: list[tuple[str, str]], kind: str | None) -> None:
    found = verdict(kernel(*changes))
    assert (found.verdict, found.kinds) == (("fault", (kind,)) if kind else ("not provable here", ()))


def test_what_only_some_data_leads_to_is_no_fault() -> None:
    """Which numbers lie in memory is not known: the race may never be come to."""
    found = verdict(kernel(LAST, ("fetch_add(counter, 1)", "counter[]")))
    assert (found.verdict, found.kinds) == ("not provable here", ())
    assert "depends on what is read from memory" in found.diagnostics[0].message
