"""The trace check on whole kernels: those that are right have no finding, those with a race have theirs, under a
schedule that does not show it."""

from pathlib import Path

import numpy as np
import pytest
from card_kernels import FILES as CARD
from card_kernels import kernel as card_kernel
from traced import EXAMPLES, FAULTS, ROOT, file_kernel, kinds, largest_case, watched

SAMPLES = sorted((ROOT / "samples").glob("*.pdsl"))
CLEAN = [path for path in (*EXAMPLES, *FAULTS) if path.stem.endswith("_clean")]


def name(path: Path) -> str:
    return path.stem


def texts(found):
    return "\n".join(d.render() for d in found.diagnostics)


@pytest.mark.parametrize("schedule", ["round-robin", "slow:warp0"])
@pytest.mark.parametrize("path", CLEAN, ids=name)
def test_kernels_that_are_right(path, schedule):
    made = file_kernel(path)
    report, right = made.run(largest_case(made), schedule)
    assert report.finished and right
    assert not made.found.races and not made.found.incomplete, texts(made.found)


# What is found of those with a fault that ends no run under round robin, or does so late: by file, classes, and a line
# of the file that one of the findings points at.
FAULTY = {
    "slot_index_after_step": ({"stale stage index"}, "buf[unsafe_offset=slot + lane] ="),
    "04_parity_of_the_slot": ({"slot read before full", "wrong parity"}, "= slots[unsafe_offset=Int32(s * 32) + lane]"),
    "07_surplus_bytes": (
        {"slot overwritten before release", "exit with work in flight"},
        "tiles_b.unsafe_offset(slot)",
    ),
    "12_fence_by_another_thread": ({"use before init is visible"}, "cp_async_bulk_shared_cta_global(tile"),
    "12_peer_not_initialised": ({"use before init is visible"}, "arrive_cluster(rank ^ 1)"),
    "13_data_over_barriers": ({"re-init or inval while live"}, "words[unsafe_offset=thread_idx.x] = 2"),
    "14_peer_has_exited": ({"exit with work in flight", "slot read before full"}, "arrive_cluster(1)"),
    "21_loads_and_barriers": ({"wrong parity"}, "full[unsafe_offset=i % Int32(over)].wait"),
    "21_two_channels": ({"slot overwritten before release", "wrong parity"}, "slots[unsafe_offset=32 + lane] = 2"),
    "25_exit_with_a_copy": ({"exit with work in flight"}, "cp_async_bulk_global_shared_cta(res, tile, 128)"),
    "25_load_nobody_waits_for": ({"exit with work in flight"}, "cp_async_bulk_shared_cta_global("),
}


@pytest.mark.parametrize("stem", FAULTY)
def test_kernels_with_a_race(stem):
    path = next(p for p in (*EXAMPLES, *FAULTS) if p.stem == f"{stem}_faulty")
    made = file_kernel(path)
    wanted, text = FAULTY[stem]
    seen, lines = set(), []
    for constants in made.variants():
        for case in made.cases(constants):
            made.run(case, "round-robin")
            seen |= set(kinds(made.found))
            lines += [race.diagnostic.span.source.line(race.diagnostic.span.line) for race in made.found.races]
    assert seen == wanted
    assert any(text in line for line in lines), lines


@pytest.mark.parametrize("stem", CARD)
def test_kernels_that_ran_on_a_card(stem):
    made = card_kernel(stem)
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in made.arguments]
    found, report = watched(
        made.ptx,
        grid=made.grid,
        block=made.block,
        cluster=made.cluster,
        shared_bytes=made.smem,
        arguments=given,
    )
    assert report.finished and not found.races, texts(found)
