"""The correct kernels of tests/data/examples, run as their own headers say: launch, arguments and expected result."""

from pathlib import Path

import pytest
from device_headers import read_header, run_case

import ptxdsl

FILES = sorted((Path(__file__).parents[1] / "data" / "examples").glob("*_clean.pdsl"))


@pytest.mark.parametrize("unroll", [True, False], ids=["ring", "counter"])
@pytest.mark.parametrize("wait", ["try", "probe"])
@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_clean_example(path, wait, unroll, launch, output, device, rng):
    header = read_header(path)
    kernel = ptxdsl.load(path, wait=wait, ring_unroll=unroll)["kernel"]
    for scalars in header.cases():
        run_case(header, kernel, scalars, launch, output, device, rng)


def test_every_header_is_understood():
    assert len(FILES) == 9
    for path in FILES:
        header = read_header(path)
        assert header.cases() and any(a.output for a in header.arguments)
