"""What benchmarks say on any machine: instruction counts, README's table of them, and that there is no GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
sys.path.append(str(BENCHMARKS))

import gemm_blackwell  # noqa: E402
import oracle_counts  # noqa: E402

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


@pytest.mark.usefixtures("ptxas")
def test_nothing_is_longer_than_the_reference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Loops in both forms, and an operation; the script has all of the kernels."""
    files = ["kernel_a", "kernel_b", "iso_commit_mma_g1_S3__sm_100a"]
    monkeypatch.setattr(sys, "argv", ["oracle_counts.py", *files])
    assert oracle_counts.main() == 0, capsys.readouterr().out


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize(("letter", "arch"), [("a", "sm_90a"), ("b", "sm_100a")])
def test_the_readme_has_these_counts(letter: str, arch: str) -> None:
    line = rf"^\| kernel {letter.upper()}, {arch} \| (\S+) / (\S+) \| (\S+) / (\S+) \|"
    match = re.search(line, (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None
    (sample,) = (ROOT / "samples").glob(f"*_kernel_{letter}.pdsl")
    counts = oracle_counts.count_ours(sample, arch, "try", ring_unroll=True)
    assert [f"{loop.per_stage:.1f}" for loop in (*counts.ptx_loops, *counts.sass_loops)] == list(match.groups())


@pytest.mark.usefixtures("ptxas")
@pytest.mark.parametrize(("ctas", "clc"), [(1, False), (2, False), (2, True)])
def test_the_blackwell_products_are_started_in_few_instructions(ctas: int, clc: bool) -> None:
    (case,) = (c for c in gemm_blackwell.cases() if (c.type, c.ctas, c.clc) == ("bf16", ctas, clc))
    said, good = gemm_blackwell.code_of(case, "sm_100a")
    assert good, said
