"""Shuffles, reductions, votes and atomics on the card against NumPy."""

import numpy as np
import pytest
from device_rows import NUMPY

import ptxdsl

SHUFFLES = """
from shuffle import shuffle_down, shuffle_idx, shuffle_up, shuffle_xor
from vote import vote_all, vote_any, vote_ballot
from warp import sum, prefix_sum

@kernel
def lanes(a: Pointer[{kind}, MutAnyOrigin], res: Pointer[{kind}, MutAnyOrigin], votes: Pointer[UInt32, MutAnyOrigin]):
    var t = Int32(thread_idx.x)
    var x = a[unsafe_offset=t]
    res[unsafe_offset=t] = shuffle_xor(x, 5)
    res[unsafe_offset=64 + t] = shuffle_down(x, 3)
    res[unsafe_offset=128 + t] = shuffle_up(x, 2)
    res[unsafe_offset=192 + t] = shuffle_idx(x, 7)
    res[unsafe_offset=256 + t] = sum(x)
    res[unsafe_offset=320 + t] = prefix_sum(x)
    votes[unsafe_offset=t] = vote_ballot(x > 3)
    votes[unsafe_offset=64 + t] = UInt32(1) if vote_any(x > 9) else UInt32(0)
    votes[unsafe_offset=128 + t] = UInt32(1) if vote_all(x > -10) else UInt32(0)
"""


@pytest.mark.parametrize("kind", ["Int32", "Float32", "Int64", "Float64"])
def test_shuffles_reductions_and_votes(kind, launch, output, device, rng):
    a = rng.integers(-9, 10, 64).astype(NUMPY[kind])
    res, votes = output(384, NUMPY[kind]), output(192, np.uint32)
    launch(ptxdsl.loads(SHUFFLES.format(kind=kind))["lanes"], 1, 64, device(a), res, votes)
    lane = np.arange(32)
    warps = a.reshape(2, 32)
    down, up = np.where(lane + 3 < 32, lane + 3, lane), np.where(lane >= 2, lane - 2, lane)
    expected = [warps[:, lane ^ 5], warps[:, down], warps[:, up], np.repeat(warps[:, 7:8], 32, 1)]
    expected += [np.repeat(warps.sum(1, keepdims=True), 32, 1), warps.cumsum(1)]
    assert np.array_equal(res.read(), np.concatenate([e.ravel() for e in expected]).astype(a.dtype))
    ballot = ((warps > 3) << lane).sum(1)
    told = np.concatenate([np.repeat(ballot, 32), np.repeat((warps > 9).any(1), 32), np.ones(64)]).astype(np.uint32)
    assert np.array_equal(votes.read(), told)


ATOMICS = """
from atomic import fetch_add, fetch_max, fetch_min, fetch_xor, exchange, compare_exchange

@kernel
def count(a: Pointer[{kind}, MutAnyOrigin], res: Pointer[{kind}, MutAnyOrigin], tickets: Pointer[Int32, MutAnyOrigin]):
    var i = Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)
    var x = a[unsafe_offset=i]
    _ = fetch_add(res, x)
    _ = fetch_max(res.unsafe_offset(1), x)
    _ = fetch_min(res.unsafe_offset(2), x)
    var ticket = fetch_add(tickets, 1)
    tickets[unsafe_offset=1 + ticket] = i
"""


@pytest.mark.parametrize("kind", ["Int32", "UInt32", "Int64", "UInt64", "Float32", "Float64"])
def test_atomics_lose_nothing(kind, place, launch, device, rng):
    n = 4096
    a = rng.integers(0, 1000, n).astype(NUMPY[kind])
    res = device(np.array([0, 0, 1000], NUMPY[kind]))
    tickets = device(np.zeros(n + 1, np.int32))
    launch(ptxdsl.loads(ATOMICS.format(kind=kind))["count"], n // 256, 256, device(a), res, tickets)
    assert place.host(res).tolist() == [a.sum(), a.max(), a.min()]
    drawn = place.host(tickets)
    assert drawn[0] == n
    assert np.array_equal(np.sort(drawn[1:]), np.arange(n))
