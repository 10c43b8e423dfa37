"""A spread of kernels whose verdicts all interleavings of their small launches confirm; ``benchmarks/agreement.py`` has
all of them."""

import pytest
from confirmed import AGREES, DISAGREES, Confirmation, Seen, confirm, confirm_entry
from corpus import CLEAN, FAULTY, FIXED, read
from traced import EXAMPLES, FAULTS

SPREAD = [
    "commit_missing_on_branch_clean",
    "commit_missing_on_branch_faulty",
    "count_too_high_faulty",
    "cyclic_opposite_order_clean",
    "cyclic_opposite_order_faulty",
    "init_without_barrier_faulty",
    "slot_index_after_step_clean",
    "slot_index_after_step_faulty",
    "substage_release_forgotten_faulty",
    "03_one_slot_in_a_ring_faulty",
    "04_parity_of_the_slot_faulty",
    "05_peeled_wait_faulty",
    "07_copy_on_one_path_clean",
    "07_copy_on_one_path_faulty",
    "17_all_lanes_expect_faulty",
    "18_first_wait_faulty",
    "21_two_channels_faulty",
    "25_early_return_clean",
]


CORPUS = [
    "bulk_stores",
    "cluster_multicast",
    "persistent_tiles",
    "tensor_copies",
    "two_producers_by_turns",
    "14_own_barrier_for_the_peer",
    "11_load_without_proxy_fence",
    "16_id_of_the_block",
    "16_id_of_the_block_fixed",
    "22_given_back_before_all_have_read_fixed",
    "22_lanes_have_not_met",
    "27_more_registers_than_there_are",
    "27_more_registers_than_there_are_fixed",
]


@pytest.mark.parametrize("stem", SPREAD)
def test_a_verdict_is_confirmed(stem):
    path = next(path for path in (*EXAMPLES, *FAULTS) if path.stem == stem)
    found = list(confirm(path))
    assert found and all(each.answer == AGREES for each in found), [each.text() for each in found]


@pytest.mark.parametrize("stem", CORPUS)
def test_a_verdict_on_the_corpus_is_confirmed(stem):
    path = next(path for path in (*CLEAN, *FAULTY, *FIXED) if path.stem == stem)
    found = list(confirm_entry(read(path)))
    assert found and all(each.answer == AGREES for each in found), [each.text() for each in found]


def test_what_disagrees_is_told():
    """A proved kernel that fails in one instance, and a fault that none shows."""
    good, bad = Seen({"n": 0}, (), True, 1), Seen({"n": 1}, ("race: data race",), True, 1)
    assert Confirmation("k", "proved", (), [good, bad]).answer == DISAGREES
    assert Confirmation("k", "fault", ("wrong parity",), [good]).answer == DISAGREES
    assert Confirmation("k", "fault", ("wrong parity",), [Seen({}, (), False, 9)]).answer == "not decided"
    assert Confirmation("k", "not provable here", (), [bad]).answer == "not decided"
