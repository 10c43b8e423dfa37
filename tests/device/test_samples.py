"""Every sample on the card, as its header says and at the sizes where rings go wrong; every form of waits and rings."""

from pathlib import Path

import pytest
from device_headers import read_header, run_case

import ptxdsl
from ptxdsl.api import device_arch
from ptxdsl.cuda.driver import current_driver

SAMPLES = {path.stem: path for path in sorted((Path(__file__).parents[2] / "samples").glob("*.pdsl"))}
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

pytestmark = pytest.mark.device


def sample(name, gpu, wait="try", unroll=True):
    """Its header and its only kernel; skipped where the card is of none of its targets."""
    header = read_header(SAMPLES[name])
    arch = device_arch(current_driver().context(None)[1])
    if arch not in header.targets:
        pytest.skip(f"{name} is for {', '.join(header.targets)}; this card is {arch}")
    module = ptxdsl.load(SAMPLES[name], wait=wait, ring_unroll=unroll)
    (kernel,) = module.kernels
    return header, module[kernel]


@pytest.mark.parametrize("unroll", [True, False], ids=["ring", "counter"])
@pytest.mark.parametrize("wait", ["try", "probe"])
@pytest.mark.parametrize("name", SAMPLES)
def test_sample(name, wait, unroll, gpu, launch, output, device, rng):
    header, kernel = sample(name, gpu, wait, unroll)
    for scalars in header.cases():
        run_case(header, kernel, scalars, launch, output, device, rng)
    for grid, scalars in MORE.get(name, []):
        run_case(header, kernel, scalars, launch, output, device, rng, grid)


@pytest.mark.parametrize("name", SAMPLES)
def test_for_the_sanitizer(name, gpu, launch, output, device, rng):
    """The header's cases once, small: what compute-sanitizer is run over."""
    header, kernel = sample(name, gpu)
    for scalars in header.cases():
        run_case(header, kernel, scalars, launch, output, device, rng)


@pytest.mark.parametrize("wait", ["try", "probe"])
@pytest.mark.parametrize(
    ("stages", "tile", "lag"), [(1, 16, 0), (2, 1024, 0), (2, 1024, 1), (3, 4096, 2), (8, 4096, 3), (6, 2048, 4)]
)
def test_bulk_copies_of_every_ring(stages, tile, lag, wait, gpu, launch, output, device, rng):
    header, kernel = sample("07_bulk_copy_ring", gpu, wait)
    for run in (1, max(1, stages - 1), stages, stages + 1, 2 * stages + 1, 40):
        special = kernel.specialize(STAGES=stages, TILE=tile, LAG=lag, RUN=run)
        for rest in (0, 16):
            scalars = {"n": 2 * tile * run + rest}
            run_case(header, special, scalars, launch, output, device, rng, 3)
