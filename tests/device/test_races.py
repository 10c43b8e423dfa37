"""What the checker says of races, on a card with random delays: kernels that it proves never fail, and mutants that it
reports give wrong results.

Only mutants that leave all operations on barriers as they are, so that none of them can hang.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from delays import delayed

import ptxdsl

sys.path.insert(0, str(Path(__file__).parents[1] / "sim"))
sys.path.insert(0, str(Path(__file__).parents[1] / "check"))
from corpus import CLEAN, Entry, read
from mutant_classes import equivalent
from mutant_runs import judge
from mutants import Mutant, mutants
from places import Card

SEEDS = 200
ENTRIES = {path.stem: read(path) for path in CLEAN}
HOPPER = [entry for entry in ENTRIES.values() if entry.arch.startswith("sm_90")]
SAFE = (
    "read before wait",
    "read after release",
    "fill before acquire",
    "fill after commit",
    "other slot",
    "more groups under way",
    "group waited for after arrival",
)
TRIED = (
    "ring_of_any_size",
    "chain_of_three",
    "double_buffer",
    "halves_given_back",
    "prologue_without_acquire",
    "conditional_stages",
    "persistent_tiles",
    "warps_release_elected",
    "bulk_stores",
    "async_copies_in_groups",
    "two_readers_of_their_own",
    "read_far_ahead",
)


def case_of(entry: Entry) -> dict[str, int]:
    """Values that go round the rings several times."""
    known = entry.small()
    return {**known, "n": 20} if "n" in known else known


class Runs:
    """Launches of one text. wrong: for how many of the seeds the result is not the header's."""

    def __init__(self, torch, entry: Entry, text: str, config) -> None:
        self.card, self.config, self.entry = Card(torch), config, entry
        known = case_of(entry)
        constants = {name: known[name] for name in entry.constants}
        self.kernel = ptxdsl.loads(delayed(text), entry.path.name).kernel.specialize(**constants)
        self.bound = entry.bound(known)
        self.arrays = [self._array(v) if isinstance(v, np.ndarray) else v for v in self.bound.given]
        (self.name,) = self.bound.outputs
        self.output = self.arrays[[a.name for a in entry.arguments].index(self.name)]
        expected = np.reshape(self.bound.expected, tuple(self.output.shape)).astype(np.float32)
        self.expected = torch.from_numpy(expected).cuda()
        self.zeros = [v for a, v in zip(entry.arguments, self.arrays, strict=True) if a.use == "zeros"]
        self.arguments = [self.bound.made(a, v) for a, v in zip(entry.arguments, self.arrays, strict=True)]

    def _array(self, values: np.ndarray):
        torch = self.card.torch
        if values.dtype == np.uint16:
            return torch.from_numpy(values.view(np.int16)).cuda().view(torch.bfloat16)
        return torch.from_numpy(values).cuda()

    def wrong(self, seeds: int, enough: int) -> int:
        found = 0
        for seed in range(seeds):
            self.output.fill_(77)
            for array in self.zeros:
                array.fill_(0)
            smem = self.entry.smem or None
            self.card.launch(
                self.kernel, self.entry.grid, self.entry.block, *self.arguments, seed, smem=smem, config=self.config
            )
            found += not self.card.torch.equal(self.output, self.expected)
            if found >= enough:
                break
        return found


@pytest.mark.device
@pytest.mark.parametrize("entry", HOPPER, ids=lambda e: e.name)
def test_no_delay_makes_a_clean_kernel_fail(entry, gpu, request):
    assert Runs(gpu, entry, entry.text, request.config).wrong(SEEDS, 1) == 0


def race_mutants() -> list[Mutant]:
    """Of each kernel and operator one."""
    found: dict[tuple[str, str], Mutant] = {}
    for name in TRIED:
        for mutant in mutants(name, ENTRIES[name].text):
            if mutant.operator in SAFE and equivalent(name, mutant.operator, mutant.place) is None:
                found.setdefault((name, mutant.operator), mutant)
    return list(found.values())


@pytest.mark.device
def test_reported_races_give_wrong_results(gpu, request):
    shown, reported = [], 0
    for mutant in race_mutants():
        entry = ENTRIES[mutant.kernel]
        if judge(entry, mutant, trace=False).by != "proof":
            continue
        reported += 1
        wrong = Runs(gpu, entry, mutant.text, request.config).wrong(SEEDS, 3)
        print(f"{mutant.name}: {'wrong' if wrong else 'not shown'}")
        if wrong:
            shown.append(mutant)
    print(f"{len(shown)} of {reported} reported races gave wrong results")
    assert len(shown) >= 10 and len({mutant.operator for mutant in shown}) >= 4


@pytest.mark.parametrize("name", ["ring_of_any_size", "bulk_loads", "cluster_of_neighbours"])
def test_delays_change_no_result_in_the_simulator(name):
    entry = ENTRIES[name]
    known = entry.small()
    bound = entry.bound(known)
    compiled = entry.compiled(known, delayed(entry.text))
    from ptxdsl.cuda.simulated import simulate_kernel

    report = simulate_kernel(compiled, {}, [*bound.host(), 5], grid=entry.grid, block=entry.block)
    assert report.finished and bound.right(), report.render()


def test_every_clean_kernel_takes_delays():
    for entry in HOPPER:
        assert "pause(seed, 1)" in delayed(entry.text)
    assert len(HOPPER) >= 25 and len(race_mutants()) >= 20
