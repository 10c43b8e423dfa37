"""Few states, none of them missing: what a proof takes for the same state is the same."""

from __future__ import annotations

import pytest
from corpus import CLEAN, FAULTY, Entry, read
from pipeline_kernels import ACQUIRE, WRITE, ring
from proofs import SAMPLES, verdict

from ptxdsl import driver
from ptxdsl.check import proof, search
from ptxdsl.check.blocks import shapes
from ptxdsl.gemm_configs import CONFIGS, Config
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.protocol.model import Kernel
from ptxdsl.source import Source

# Whether the producer's turn i of n gives its stage away, as Mojo has it and as Python does.
CONDITIONS = (
    "i != 40", "i != 100", "i < 100", "i - 7 < 1", "7 - i != 0", "i * 3 - 20 < 7", "i // 8 < 3", "(i >> 3) != 2",
    "i % 16 != 9", "(i & 12) != 8", "min(i, 20) < 20", "n != 9", "i - n != 7", "n - i != 7", "i + 2 != n", "i >= 0",
)  # fmt: skip

LATE = """
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[9, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        comptime for i in range(9):
            bars[unsafe_offset=i].init(32)
    barrier()
    if thread_idx.x < 32:
        for i in range(n):
            res[unsafe_offset=i] = 1
            syncwarp()
        _ = bars[unsafe_offset=8].arrive()
    else:
        var p = RolePipeline[STAGES, True](bars, bars.unsafe_offset(4))
        bars[unsafe_offset=8].wait(0)
        for i in range(n):
            p.acquire()
            p.commit()
"""


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_turn_that_is_unlike_the_others_is_found(condition: str) -> None:
    """The consumer waits forever at the first turn that gives nothing, however far away that is."""
    works = all(eval(condition, {"min": min}, {"i": i, "n": n}) for n in range(130) for i in range(n))
    text = ring((ACQUIRE, WRITE, f"if {condition}: p.commit()"))
    assert verdict(text).verdict == (proof.PROVED if works else proof.FAULT)


def test_no_launch_is_told_that_there_cannot_be() -> None:
    """A block's number is below that of the blocks; the last one is a block, too."""
    kernels = [ring((ACQUIRE, WRITE, f"if block_idx.x{plus} < grid_dim.x: p.commit()")) for plus in ("", " + 1")]
    assert [verdict(text).verdict for text in kernels] == [proof.UNPROVED, proof.FAULT]


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_who_begins_a_loop_when_others_have_left_it_makes_all_its_turns(stages: int) -> None:
    """Nobody gives a stage back: with more turns than stages the second warp waits forever."""
    assert verdict(LATE.replace("STAGES", str(stages))).kinds == ("missing arrive",)


def _model(text: str, arch: str, **constants: str) -> Kernel:
    job = driver.Job(Source("kernel.pdsl", text), constants=constants, options=Options(arch, check="off"))
    (kernel,) = driver.run(job, "tir").kernels[:1]
    return kernel_model(kernel)


def _searched(kernel: Kernel, *, coarse: bool) -> proof.Proof:
    shape = shapes(kernel)[0][0]
    return proof.searched(search.Search(kernel, shape, search.MAX_STATES, search.MAX_STEPS, coarse=coarse))


@pytest.mark.parametrize("entry", [read(path) for path in (*CLEAN[::3], *FAULTY[::2])], ids=lambda entry: entry.name)
def test_what_the_coarse_search_proves_the_fine_one_does(entry: Entry) -> None:
    constants = {name: str(value) for name, value in entry.choices()[0].items() if name in entry.constants}
    kernel = _model(entry.text, entry.arch, **constants)
    if _searched(kernel, coarse=True).verdict == proof.PROVED:
        assert _searched(kernel, coarse=False).verdict == proof.PROVED


SIX = ring().replace("[2, ", "[6, ").replace("offset(2)", "offset(6)")
# What makes one of six stages unlike the others: a statement of the ring, and what it becomes.
UNLIKE = {
    "a stage that is not given back": (
        "c.release()",
        "c.step()\n            if i % 6 != 5: c.consumer_mbar()[].arrive()",
    ),
    "a barrier by its number": ("c.wait()", "c.wait()\n            bars[unsafe_offset=3].wait(0)"),
    "a slot that is another's": ("Int32(c.state.index())", "(Int32(c.state.index()) % 5)"),
    "a parity that is left alone": ("c.wait()", "c.producer_mbar()[].wait(0)"),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_stage_that_is_unlike_the_others_is_seen(name: str) -> None:
    assert _searched(_model(SIX, "sm_90a"), coarse=True).verdict == proof.PROVED
    was, is_ = UNLIKE[name]
    assert was in SIX
    assert _searched(_model(SIX.replace(was, is_), "sm_90a"), coarse=True).verdict != proof.PROVED


HOPPER = (SAMPLES / "08_gemm_hopper.pdsl").read_text(encoding="utf-8")


OTHERS = [c for c in CONFIGS if c.sideways or c.groups == 3]
WHOLE = [c for c in CONFIGS if c.split < 8 and c.columns % 64 == 0 and c not in OTHERS]


@pytest.mark.parametrize("config", WHOLE + OTHERS, ids=repr)
def test_the_products_of_ptxdsl_kernels(config: Config) -> None:
    """A tile loop around a loop along K: where tiles end in a ring of S stages there are 2 ** S ways, and as many
    places as in a ring of one."""
    constants = {
        "GROUPS": config.groups, "BN": config.columns, "STAGES": config.stages, "C_STAGES": config.c_stages,
        "CLUSTER": config.cluster, "SPLIT": config.split, "SIDEWAYS": config.sideways,
    }  # fmt: skip
    found = _searched(_model(HOPPER, "sm_90a", **{name: str(value) for name, value in constants.items()}), coarse=True)
    assert found.verdict == proof.PROVED
    assert found.states < 8


def test_a_ring_whose_stages_are_filled_by_as_many_bytes_as_are_left() -> None:
    """Stores of five stages are in flight: their turns are told apart, and no stages of the ring."""
    copies = _model((SAMPLES / "07_bulk_copy_ring.pdsl").read_text(encoding="utf-8"), "sm_90a")
    found = _searched(copies, coarse=True)
    assert (found.verdict, found.states) == (proof.PROVED, 7)


@pytest.mark.parametrize(("bytes", "is_"), [(64, proof.PROVED), (128, proof.PROVED), (256, proof.FAULT)])
def test_bytes_that_are_others_in_one_turn(bytes: int, is_: str) -> None:
    """More than a stage has are the next one's, which its readers may not have read."""
    ring = (CLEAN[0].parent / "bulk_loads.pdsl").read_text(encoding="utf-8")
    several = ring.replace("expect_bytes(128)", "expect_bytes(bytes)").replace("128, full", "bytes, full")
    turn = f"p.acquire()\n            var bytes = Int32({bytes}) if i == 5 else Int32(128)"
    assert several.count("bytes, full") == 1
    assert verdict(several.replace("p.acquire()", turn)).verdict == is_
