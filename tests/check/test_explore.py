"""The exploration: against all interleavings one by one, on kernels with faults, and its schedules replayed."""

import numpy as np
import pytest
from corpus import FIXED, read
from interleavings import outcomes
from traced import EXAMPLES, FAULTS, ROOT, file_kernel

import ptxdsl
from ptxdsl.cli import main
from ptxdsl.explore.explore import Bounds, explore


# Of random kernels those with one outcome only are many, and some have thousands of interleavings: most of these have
# two outcomes or three, and all of them few enough interleavings. In 54, 69 and 184 arrivals run ahead of all waits.
@pytest.mark.parametrize("seed", [1, 6, 8, 16, 21, 29, 48, 54, 69, 71, 86, 184, 1044])
def test_a_random_kernel_comes_to_all_that_it_comes_to(seed):
    """The same outcomes as without reduction, in no more runs."""
    every, brute = outcomes(seed, True, Bounds(runs=200, seconds=60))
    found, reduced = outcomes(seed, False, Bounds(runs=200, seconds=60))
    assert brute.complete and reduced.complete
    assert found == every and reduced.runs <= brute.runs


def explored(stem, bounds=None, **names):
    made = file_kernel(next(path for path in (*EXAMPLES, *FAULTS) if path.stem == stem))
    return made.explore(names, bounds or Bounds(runs=100, seconds=60))


@pytest.mark.parametrize(
    ("stem", "names"),
    [
        ("count_too_high_clean", {"n": 5}),
        ("cyclic_opposite_order_clean", {"n": 3}),
        ("substage_release_forgotten_clean", {"n": 5}),
        ("05_peeled_wait_clean", {"STAGES": 3, "n": 4}),
        ("06_barrier_before_release_clean", {"STAGES": 3, "n": 4}),
        ("08_count_of_own_consumers_clean", {"STAGES": 2, "n": 6}),
        ("07_copy_on_one_path_clean", {"STAGES": 3, "n": 4}),
    ],
)
def test_what_its_barriers_order_takes_one_run(stem, names):
    found = explored(stem, **names)
    assert found.runs == 1 and found.complete and found.agrees


def test_a_wait_is_not_overtaken_where_the_next_phase_needs_its_own_warp():
    """Whoever is first arrives for the next phase before the others look; to complete it takes all of them."""
    entry = read(next(path for path in FIXED if path.stem == "22_one_buffer_and_an_mbarrier_fixed"))
    names = {"n": 5}
    found = explore(entry.compiled(names), entry.bound(names).host(), grid=entry.grid, block=entry.block)
    assert found.runs == 1 and found.complete and found.agrees


@pytest.mark.parametrize(
    ("stem", "names", "statuses"),
    [
        ("count_too_high_faulty", {"n": 3}, {"finished"}),
        ("count_too_high_faulty", {"n": 4}, {"deadlock"}),
        ("cyclic_opposite_order_faulty", {"n": 1}, {"deadlock"}),
        ("init_without_barrier_faulty", {"n": 1}, {"finished", "fault"}),
        ("03_one_slot_in_a_ring_faulty", {"n": 2}, {"finished", "deadlock"}),
        ("04_parity_of_the_slot_faulty", {"SLOTS": 2}, {"finished", "deadlock"}),
        ("12_peer_not_initialised_faulty", {}, {"finished", "fault"}),
        ("14_own_barrier_for_the_peer_faulty", {}, {"deadlock"}),
        ("14_peer_has_exited_faulty", {}, {"finished", "fault"}),
    ],
)
def test_what_a_fault_comes_to(stem, names, statuses):
    found = explored(stem, **names)
    assert {outcome.status for outcome in found.outcomes} == statuses and found.complete


def test_results_that_depend_on_the_interleaving():
    found = explored("slot_index_after_step_faulty", n=5)
    assert found.complete and [outcome.results for outcome in found.outcomes] == list(range(8))
    assert not found.agrees and found.text().startswith("finished with results 0 (1 of 8 runs)\n")


def test_a_search_that_ends_early_says_so():
    found = explored("slot_index_after_step_faulty", Bounds(runs=3), n=5)
    assert not found.complete and found.runs == 3
    assert found.text().endswith("not all interleavings seen: the limit of 3 runs")
    long = explored("count_too_high_clean", Bounds(turns=300), n=200)
    assert not long.complete and "a run did not end within 300 turns" in long.text()


def test_the_schedule_of_an_outcome_is_replayed_by_the_command(tmp_path, monkeypatch, capsys):
    """Both results of a race, from files."""
    path = ROOT / "tests" / "data" / "examples" / "slot_index_after_step_faulty.pdsl"
    source, result = np.arange(1, 97, dtype=np.float32), np.zeros(96, np.float32)
    found = explore(ptxdsl.load(str(path)).kernel, [source, result, 3], block=64)
    assert [outcome.results for outcome in found.outcomes] == [0, 1]
    assert not result.any()  # as it was
    kept = []
    for outcome in found.outcomes:
        (tmp_path / "schedule.json").write_text(outcome.schedule.to_json())
        command = ["run", str(path), "--block", "64", "--schedule", str(tmp_path / "schedule.json")]
        command += ["--arg", "src=arange:f32:96:start=1", "--arg", "res=zeros:f32:96", "--arg", "n=3"]
        assert main([*command, "--save", f"res={tmp_path / 'res.npy'}"]) == 0
        kept.append(np.load(tmp_path / "res.npy"))
    capsys.readouterr()
    assert not np.array_equal(*kept)


def test_clusters_and_their_copies():
    found = explored("09_commit_mask_of_a_pair_clean", n=2)
    assert found.runs == 1 and found.complete and found.agrees
    found = explored("09_commit_mask_of_a_pair_faulty", n=1)
    assert {outcome.status for outcome in found.outcomes} == {"fault", "deadlock"}
