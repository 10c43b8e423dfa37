"""Tests on a card and in the simulator. Without a card its half is skipped with the reason; PTXDSL_REQUIRE_GPU=1 makes
that a failure."""

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl import LaunchError
from ptxdsl.cuda.driver import current_driver

sys.path.insert(0, str(Path(__file__).parent))
from device_rows import rows_kernel, storage
from places import Card, Output, Simulated


def _why_not():
    try:
        current_driver()
    except LaunchError as problem:
        return problem.diagnostics[0].message
    return None if importlib.util.find_spec("torch") else "needs PyTorch for its arrays"


@pytest.fixture(scope="session")
def gpu():
    """PyTorch on a machine with a GPU."""
    reason = _why_not()
    if reason is not None:
        if os.environ.get("PTXDSL_REQUIRE_GPU"):
            pytest.fail(f"PTXDSL_REQUIRE_GPU is set, but {reason}")
        pytest.skip(f"no GPU to test on: {reason}")
    with warnings.catch_warnings():  # its deprecations are not ours
        warnings.simplefilter("ignore")
        import torch

        torch.cuda.init()
    return torch


@pytest.fixture(params=[pytest.param("card", marks=pytest.mark.device), "sim"])
def place(request):
    """A card, and the simulator: a test that launches runs on both."""
    return Card(request.getfixturevalue("gpu")) if request.param == "card" else Simulated()


@pytest.fixture
def output(place):
    """output(size, dtype): poisoned."""
    return lambda size, dtype=np.float32: Output(place, size, dtype)


@pytest.fixture
def device(place):
    """device(numpy array): a copy where the kernel runs."""
    return place.array


@pytest.fixture
def launch(place, request):
    """launch(kernel, grid, block, *arguments, smem=None, arch=None): runs to the end."""

    def run(kernel, grid, block, *arguments, smem=None, arch=None):
        given = [a.array if isinstance(a, Output) else a for a in arguments]
        place.launch(kernel, grid, block, *given, smem=smem, arch=arch, config=request.config)

    return run


@pytest.fixture
def rng(request):
    """Random numbers that differ from test to test and are the same every time."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


@pytest.fixture
def run_rows(place, launch, output, device):
    """run_rows(inputs, arrays, expressions, …): a list with one array an expression."""

    def run(inputs, arrays, expressions, imports="", **options):
        text, outputs = rows_kernel(inputs, expressions, imports)
        kernel = ptxdsl.loads(text, "rows.pdsl", **options)["rows"]
        n = len(arrays[0])
        results = [output(n * sum(k == kind for _, k in expressions), storage(kind)) for kind in outputs]
        launch(kernel, -(-n // 128), 128, *(place.typed(device(a), k) for a, k in zip(arrays, inputs, strict=True)),
               *(place.typed(r.array, k) for r, k in zip(results, outputs, strict=True)), n)  # fmt: skip
        read = [r.read().reshape(-1, n) for r in results]
        taken = dict.fromkeys(outputs, 0)
        found = []
        for _, kind in expressions:
            found.append(read[outputs.index(kind)][taken[kind]])
            taken[kind] += 1
        return found

    return run
