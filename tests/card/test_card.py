"""The simulator beside an H200: the same PTX, the card's results as recorded by ``record.py``."""

from pathlib import Path

import numpy as np
import pytest
from card_compare import differences
from card_kernels import FILES, NAMES, kernel
from card_rows import GROUPS

from ptxdsl.sim.launch import simulate

RESULTS = Path(__file__).parents[1] / "data" / "card.npz"


@pytest.fixture(scope="module")
def results():
    with np.load(RESULTS) as file:
        return dict(file)


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_card(name, results):
    case = kernel(name)
    report = simulate(
        case.ptx, name, grid=case.grid, block=case.block, cluster=case.cluster, shared_bytes=case.smem,
        arguments=case.arguments,
    )  # fmt: skip
    assert report.status == "finished", "\n".join(d.render() for d in report.diagnostics)
    found = {i: case.arguments[i] for i in case.compared}
    card = {i: results[f"{name}.{i}"] for i in case.compared}
    assert list(differences(case, found, card)) == []


def test_the_results_hold_something():
    assert len(FILES) >= 80 and sum(map(len, GROUPS.values())) > 650, "docs/simulator.md says so"
    with np.load(RESULTS) as file:
        for name in file.files:
            assert file[name].any(), f"{name} is all zeros"
