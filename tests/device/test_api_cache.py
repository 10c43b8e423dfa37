"""One empty cache, filled by many processes at once that launch what they find or make."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl

KERNEL = """\
@kernel
def scale[factor: Int](p: Pointer[Int32, MutAnyOrigin]):
    p[unsafe_offset=thread_idx.x] *= Int32(factor)
"""

PROGRAM = """
import sys
import numpy as np
import ptxdsl

kernel = ptxdsl.load("scale.pdsl").scale
for factor in range(20):
    p = ptxdsl.to_device(np.arange(64, dtype=np.int32))
    kernel.specialize(factor=factor)[1, 64](p)
    assert (p.to_host() == np.arange(64) * factor).all(), factor
print("compiled" if "ptxdsl.driver" in sys.modules else "found")
"""


@pytest.mark.device
def test_eight_processes_fill_one_cache_and_launch(gpu, tmp_path, ptxas):
    (tmp_path / "scale.pdsl").write_text(KERNEL)
    folder = tmp_path / "cache"
    environment = {
        **os.environ, "PTXDSL_CACHE_DIR": str(folder), "PTXDSL_ASSEMBLER": "ptxas",
        "PYTHONPATH": os.pathsep.join([str(Path(ptxdsl.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
    }  # fmt: skip
    environment.pop("PTXDSL_NO_CACHE", None)

    def run():
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1, text=True)

    processes = [run() for _ in range(8)]
    said = [process.communicate(timeout=200) for process in processes]
    assert said == [("compiled\n", "")] * 8
    kinds = [path.name.partition("-")[0] for path in folder.iterdir()]
    assert (kinds.count("kernel"), kinds.count("cubin")) == (20, 20)
    assert not [path for path in folder.iterdir() if path.name.endswith(".tmp")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert run().communicate(timeout=200) == ("found\n", "")
