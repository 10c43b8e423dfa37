"""The benchmarks that need a GPU say so where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

# Runs a script where ``torch`` cannot be imported, or finds no GPU.
RUN = """
import runpy, sys, types
sys.modules["torch"] = {torch}
sys.modules["cuda.bindings.driver"] = sys.modules["cuda.bindings"] = sys.modules["cuda"] = types.ModuleType("cuda")
sys.argv = ["script"]
runpy.run_path({script!r}, run_name="__main__")
"""
NO_GPU = "types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))"


@pytest.mark.parametrize("name", ["copy_ring.py", "handshake.py"])
@pytest.mark.parametrize(("torch", "said"), [("None", "PyTorch is not installed"), (NO_GPU, "and there is none")])
def test_one_line_without_a_gpu(name: str, torch: str, said: str) -> None:
    program = RUN.format(torch=torch, script=str(BENCHMARKS / name))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{name} needs an NVIDIA GPU") and done.stderr.endswith(f"{said}\n")
    assert done.stderr.count("\n") == 1
