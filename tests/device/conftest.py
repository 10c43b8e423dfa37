"""Tests on a card. Without one they are skipped with the reason; PTXDSL_REQUIRE_GPU=1 makes that a failure."""

import importlib.util
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl import LaunchError
from ptxdsl.cuda.driver import current_driver

sys.path.insert(0, str(Path(__file__).parent))
from device_rows import rows_kernel, storage, typed

HANG_SECONDS = float(os.environ.get("PTXDSL_HANG_SECONDS", "30"))  # tools that slow kernels down want more
# what no right kernel would write: outputs hold it before every launch
POISON = {1: 0xA5, 2: 0xDEAD, 4: 0xDEADBEEF, 8: 0xDEADBEEFDEADBEEF}
GUARD = 256  # elements after an output that must keep the poison


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


class Output:
    """A poisoned array on the card with a guard behind it."""

    def __init__(self, torch, size, dtype):
        self.dtype, self.size = np.dtype(dtype), size
        raw = np.full(size + GUARD, POISON[self.dtype.itemsize], f"u{self.dtype.itemsize}")
        self._all = torch.from_numpy(raw.view(self.dtype if self.dtype.kind in "fiub" else raw.dtype)).cuda()
        self.array = self._all[:size]

    def read(self):
        """The values after the launch; checks the guard."""
        raw = self._all.cpu().numpy()
        guard = raw[self.size :].view(f"u{self.dtype.itemsize}")
        assert (guard == POISON[self.dtype.itemsize]).all(), "written behind the end of an output"
        return raw[: self.size].view(self.dtype)


@pytest.fixture
def output(gpu):
    """output(size, dtype): poisoned."""
    return lambda size, dtype=np.float32: Output(gpu, size, dtype)


@pytest.fixture
def device(gpu):
    """device(numpy array): a copy on the card."""
    return lambda array: gpu.from_numpy(np.ascontiguousarray(array)).cuda()


@pytest.fixture
def launch(gpu, request):
    """launch(kernel, grid, block, *arguments, smem=None): runs to the end; a hang ends the process with exit code 3,
    since nothing else can be done with the card."""

    def run(kernel, grid, block, *arguments, smem=None):
        given = [a.array if isinstance(a, Output) else a for a in arguments]
        kernel[grid, block](*given, smem=smem)
        done = gpu.cuda.Event()
        done.record()
        deadline = time.monotonic() + HANG_SECONDS
        while not done.query():
            if time.monotonic() > deadline:
                request.config.pluginmanager.getplugin("capturemanager").suspend_global_capture(in_=True)
                print(f"\n{request.node.nodeid}: {kernel!r} hangs", file=sys.stderr, flush=True)
                os._exit(3)
            time.sleep(0)
        gpu.cuda.synchronize()

    return run


@pytest.fixture
def rng(request):
    """Random numbers that differ from test to test and are the same every time."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


@pytest.fixture
def run_rows(gpu, launch, output, device):
    """run_rows(inputs, arrays, expressions, …): a list with one array an expression."""

    def run(inputs, arrays, expressions, imports="", **options):
        text, outputs = rows_kernel(inputs, expressions, imports)
        kernel = ptxdsl.loads(text, "rows.pdsl", **options)["rows"]
        n = len(arrays[0])
        results = [output(n * sum(k == kind for _, k in expressions), storage(kind)) for kind in outputs]
        launch(kernel, -(-n // 128), 128, *(typed(gpu, device(a), k) for a, k in zip(arrays, inputs, strict=True)),
               *(typed(gpu, r.array, k) for r, k in zip(results, outputs, strict=True)), n)  # fmt: skip
        read = [r.read().reshape(-1, n) for r in results]
        taken = dict.fromkeys(outputs, 0)
        found = []
        for _, kind in expressions:
            found.append(read[outputs.index(kind)][taken[kind]])
            taken[kind] += 1
        return found

    return run
