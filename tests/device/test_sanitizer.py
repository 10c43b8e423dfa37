"""compute-sanitizer finds nothing in the samples for Hopper, each of which still has the right result under it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TOOLS = {"memcheck": (), "racecheck": (), "initcheck": (), "synccheck": ("--num-cuda-barriers", "8192")}
# small launches of every sample; those on tensor maps have files of their own
LAUNCHES = (
    "test_samples.py::test_header", "test_gemm.py::test_configurations", "test_gemm.py::test_clusters_that_divide_k",
    "test_gemm_ampere.py::test_products", "test_stream_k.py::test_products",
)  # fmt: skip


@pytest.mark.device
@pytest.mark.parametrize("tool", TOOLS)
def test_nothing_is_found(tool, gpu):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    tests = [str(HERE / name) for name in LAUNCHES]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sanitizer, "--tool", tool, *TOOLS[tool], sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    said = subprocess.run(
        [*command, "-W", "ignore", "-k", "card", *tests],
        capture_output=True, text=True, timeout=500, env={**plain, "PTXDSL_HANG_SECONDS": "300"},
    )  # fmt: skip
    assert said.returncode == 0, said.stdout[-3000:] + said.stderr[-3000:]
    summary = "RACECHECK SUMMARY: 0 hazards" if tool == "racecheck" else "ERROR SUMMARY: 0 errors"
    assert summary in said.stdout, said.stdout[-3000:]
