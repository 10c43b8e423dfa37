"""The verdict on a kernel's PTX is the one on its source, for all kernels of the corpus but those named here."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import CLEAN, FAULTY, FIXED

from ptxdsl import driver
from ptxdsl.check.report import Verdict, ptx_verdicts, verdicts
from ptxdsl.diagnostics import CompileError
from ptxdsl.imports import read_file
from ptxdsl.options import Options
from ptxdsl.ptx.reader import read

TARGETS = ("sm_90a", "sm_100a")

# Kernels whose PTX is not provable, though something is said of their source, by what is not seen in PTX.
NOT_SEEN = {
    "what lies in shared memory": (
        "02_answer_not_given_back", "05_tells_another_number", "07_answer_of_eight_bytes",
        "11_answer_without_proxy_fence", "22_asked_over_unread_answers", "22_number_drawn_before_all_have_read",
        "tiles_from_a_counter",
    ),
    "tensor memory": (
        "24_accumulator_before_commit", "24_allocated_in_two_scopes", "24_first_product_adds", "24_freed_too_early",
        "24_never_freed", "freed_by_another_warp", "tensor_memory_scope",
    ),
    "turns of an unrolled loop that are a quotient": ("05_counts_by_another_step", "05_second_tile_left_out"),
    "the number of a turn, in one arm of a branch": ("16_named_barrier_given_early",),
}  # fmt: skip
_OPEN = {name for names in NOT_SEEN.values() for name in names}

# A fault of the source that is none of the PTX, which has no state of a pipeline; the verdict says what it hangs on.
HANGS_ON = {"03_state_begins_anew": ("proved", 1)}


@pytest.mark.parametrize(
    "path",
    [path for path in (*CLEAN, *FAULTY, *FIXED) if path.stem.removesuffix("_fixed") not in _OPEN],
    ids=lambda path: path.stem,
)
def test_the_ptx_has_the_verdict_of_the_source(path: Path) -> None:
    of_source, of_ptx = _both(path)
    # How large the boxes of tensor maps are, PTX does not say.
    assumptions = [clause for clause in of_ptx.assumptions if not clause.startswith("for boxes of ")]
    said = (of_source.verdict, len(of_source.assumptions))
    assert (of_ptx.verdict, len(assumptions)) == HANGS_ON.get(path.stem, said), of_ptx.diagnostics


def _both(path: Path) -> tuple[Verdict, Verdict]:
    """Of the only kernel of a file, for the first target that has what it wants."""
    problem: CompileError | None = None
    for target in TARGETS:
        job = driver.Job(read_file(str(path)), options=Options(target, check="off"))
        try:
            (of_source,) = verdicts(driver.run(job, "tir"))
            text = driver.run(job, "ptx").emitted.ptx
        except CompileError as error:
            problem = error
            continue
        (of_ptx,) = ptx_verdicts(read(text, f"{path.stem}.ptx"))
        return of_source, of_ptx
    assert problem is not None
    raise problem
