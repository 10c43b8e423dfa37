"""Accesses in another stage than the one that the role holds: which of the two is told, what of it, and where."""

from __future__ import annotations

import pytest
from pipeline_kernels import ACQUIRE, COMMIT, READ, RELEASE, WAIT, WRITE, kernel, ring
from proofs import verdict

from ptxdsl.check.report import Verdict

STALE = ("stale stage index",)
BUFFER = "unsafe_stack_allocation[4096, Float32"
EXACT = "unsafe_stack_allocation[64, Float32"  # two stages of 32 elements, and no more
HELD = "Int32(c.state.index()) * 32 + lane"
WRITTEN = "Int32(p.state.index()) * 32 + lane"


def _read(index: str, buffer: str = EXACT) -> Verdict:
    text = ring((ACQUIRE, WRITE, COMMIT), (WAIT, READ.replace(HELD, index), RELEASE))
    assert index in text
    return verdict(text.replace(BUFFER, buffer))


def _written(index: str, buffer: str = EXACT) -> Verdict:
    text = ring((ACQUIRE, WRITE.replace(WRITTEN, index), COMMIT), (WAIT, READ, RELEASE))
    assert index in text
    return verdict(text.replace(BUFFER, buffer))


@pytest.mark.parametrize("buffer", [EXACT, BUFFER])
@pytest.mark.parametrize(("stage", "held"), [(0, 1), (1, 0)])
def test_a_constant_index_is_told_with_the_stage_that_the_role_holds(buffer: str, stage: int, held: int) -> None:
    index = f"{32 * stage} + lane"
    for found, does in ((_read(index, buffer), "read"), (_written(index, buffer), "written")):
        assert found.kinds == STALE
        (fault,) = found.diagnostics
        assert f"stage {stage} of `buf` is {does}, but the role holds stage {held}" in fault.message
        assert fault.span is not None and fault.span.text == index
        assert fault.help is not None and fault.help.startswith("use the index of the stage that the role holds")


def test_an_index_of_another_stage() -> None:
    index = "Int32(c.state.index() ^ 1) * 32 + lane"
    (fault,) = _read(index).diagnostics
    assert "stage 1 of `buf` is read, but the role holds stage 0" in fault.message
    assert fault.span is not None and fault.span.text == index


@pytest.mark.parametrize(
    ("index", "held", "into"),
    [(f"{HELD} + 1", 0, 1), (f"{HELD} - Int32(c.state.index())", 1, 0), ("Int32(c.state.index()) * 31 + lane", 1, 0)],
)
def test_an_index_that_goes_too_far(index: str, held: int, into: int) -> None:
    found = _read(index, "unsafe_stack_allocation[64, Float32")
    assert found.kinds == STALE
    (fault,) = found.diagnostics
    assert f"`buf` is read beyond stage {held}, which the role holds, into stage {into}" in fault.message
    assert fault.help is not None and "a stage of `buf` has 32 elements" in fault.help
    assert fault.span is not None and fault.span.text == index


def test_the_last_stage_is_left_for_what_is_behind_the_array() -> None:
    found = _written(f"{WRITTEN} + 1")
    assert found.kinds == STALE and found.shows_with == ("n = 2",)
    assert "`buf` has 64 elements, and this accesses element 64" in found.diagnostics[0].message


def test_how_many_turns_there_are_may_keep_an_index_within_the_array() -> None:
    """A launch with n = 2 is right."""
    found = _read("i * 32 + lane")
    assert found.verdict == "not provable here" and "beyond the array" in found.diagnostics[0].message


def test_the_right_stage_that_is_given_back_too_early_is_no_wrong_index() -> None:
    found = verdict(ring((ACQUIRE, WRITE, COMMIT), (WAIT, "var at = " + HELD, RELEASE, READ.replace(HELD, "at"))))
    assert found.kinds == ("slot overwritten before release",)


def test_the_address_of_a_chosen_array_is_no_stage():
    body = """
        var to = buf
        if n > 3:
            to = buf.unsafe_offset(1024)
        if t < 32:
            to[unsafe_offset=lane] = src[unsafe_offset=lane]
            _ = bars[unsafe_offset=0].arrive()
            to[unsafe_offset=lane] = 0
        else:
            bars[unsafe_offset=0].wait(0)
            res[unsafe_offset=lane] = to[unsafe_offset=lane]
    """
    (fault,) = verdict(kernel(body)).diagnostics
    assert (fault.code, "stage" in fault.message) == ("E1208", False)
