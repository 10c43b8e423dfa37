"""Every sample on the card, as its header says and at the sizes where rings go wrong; every form of waits and rings."""

from pathlib import Path

import pytest
from device_headers import read_header, run_case

import ptxdsl

# Kernels on tensor maps have tests of their own.
SAMPLES = {
    path.stem: path
    for path in sorted((Path(__file__).parents[2] / "samples").glob("*.pdsl"))
    if "TensorMap" not in path.read_text()
}
# (grid, scalars) beside those of the header: more blocks, trips below and above the stages, long runs
MORE = {
    "01_vector_add": [(8192, {"n": 1 << 20}), (8193, {"n": (1 << 20) + 1})],
    "02_block_reduce": [(1, {"n": 3}), (500, {"n": 16})],
    "04_kernel_a": [(1, {"n": n}) for n in (6, 7, 9, 30001)],
    "05_kernel_b": [(1, {"n": n}) for n in (6, 7, 9, 30001)],
    "06_score_ring": [(1, {"n": 3}), (300, {"n": 64})],
    "07_bulk_copy_ring": [(3, {"n": (2 * 6 + tiles) * 2048 + rest}) for tiles in (1, 3, 4, 5) for rest in (0, 16)]
    + [(10923, {"n": 1 << 27}), (10923, {"n": (1 << 27) - 48})],
}  # fmt: skip

SIMULATED = 5000  # blocks times the largest scalar: more is the card's alone


def sample(name, place, wait="try", unroll=True):
    """Its header, its only kernel and the target; skipped where the card is of none of its targets."""
    header = read_header(SAMPLES[name])
    arch = place.arch(header.targets)
    if arch not in header.targets:
        pytest.skip(f"{name} is for {', '.join(header.targets)}; this card is {arch}")
    module = ptxdsl.load(SAMPLES[name], wait=wait, ring_unroll=unroll)
    (kernel,) = module.kernels
    return header, module[kernel], arch


@pytest.mark.parametrize("unroll", [True, False], ids=["ring", "counter"])
@pytest.mark.parametrize("wait", ["try", "probe"])
@pytest.mark.parametrize("name", SAMPLES)
def test_sample(name, wait, unroll, place, launch, output, device, rng):
    header, kernel, arch = sample(name, place, wait, unroll)
    for scalars in header.cases():
        run_case(header, kernel, scalars, launch, output, device, rng, arch=arch)
    for grid, scalars in MORE.get(name, []):
        if place.name == "sim" and grid * max(scalars.values()) > SIMULATED:
            continue
        run_case(header, kernel, scalars, launch, output, device, rng, grid, arch)


@pytest.mark.parametrize("place", [pytest.param("card", marks=pytest.mark.device)], indirect=True)
@pytest.mark.parametrize("name", SAMPLES)
def test_header(name, place, launch, output, device, rng):
    """The header's cases once, small: for tools that slow kernels down. In the simulator ``test_sample`` has them."""
    header, kernel, arch = sample(name, place)
    for scalars in header.cases():
        run_case(header, kernel, scalars, launch, output, device, rng, arch=arch)


@pytest.mark.parametrize("wait", ["try", "probe"])
@pytest.mark.parametrize(
    ("stages", "tile", "lag"), [(1, 16, 0), (2, 1024, 0), (2, 1024, 1), (3, 4096, 2), (8, 4096, 3), (6, 2048, 4)]
)
def test_bulk_copies_of_every_ring(stages, tile, lag, wait, place, launch, output, device, rng):
    header, kernel, arch = sample("07_bulk_copy_ring", place, wait)
    runs = [1, stages + 1, 2 * stages + 1]
    if place.name != "sim":  # which takes long, and does the same at the same place of a ring
        runs += [max(1, stages - 1), stages, 40]
    elif wait == "probe":  # of waits the longest run has all
        del runs[:-1]
    for run in runs:
        special = kernel.specialize(STAGES=stages, TILE=tile, LAG=lag, RUN=run)
        for rest in (0, 16):
            scalars = {"n": 2 * tile * run + rest}
            run_case(header, special, scalars, launch, output, device, rng, 3, arch)
