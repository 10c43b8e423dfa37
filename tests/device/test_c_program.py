"""The program in C of tests/data/c_program with the files of ``ptxdsl build``, and a fat binary, on a card."""

import ctypes
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cuda.driver import current_driver

DATA = Path(__file__).parents[1] / "data" / "c_program"


def driver_library():
    """The file of the driver that this process has loaded."""
    current_driver()
    return Path(re.search(r"/\S*libcuda\.so\S*", Path("/proc/self/maps").read_text())[0])


@pytest.mark.device
@pytest.mark.parametrize("code", ["cubin", "ptx"])
def test_the_program(gpu, c_compiler, tmp_path, monkeypatch, rng, code):
    if code == "ptx":

        def no_machine_code(compiled):
            raise ptxdsl.diagnostics.error("E0803", "none", None)

        monkeypatch.setattr("ptxdsl.backend.cubin_cache.assembled", no_machine_code)
    ptxdsl.build(DATA / "shapes.pdsl", tmp_path)
    assert ((tmp_path / "shapes.c").read_text().count("image_1") > 0) == (code == "cubin")
    library, program = driver_library(), tmp_path / "program"
    options = ["-std=c11", f"-I{tmp_path}", "-Wl,--allow-shlib-undefined"]
    c_compiler("gcc", *options, DATA / "program.c", tmp_path / "shapes.c", library, "-o", program)
    values = rng.standard_normal(512).astype(np.float32)
    (tmp_path / "source").write_bytes(values.tobytes())
    path = os.pathsep.join(filter(None, (str(library.parent), os.environ.get("LD_LIBRARY_PATH"))))
    done = subprocess.run(
        [program, "source", "result"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": path}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"
    assert "shared_bytes: 1 shared_bytes is 1048576; beside the 0 bytes that kernel 'line' has" in done.stdout
    result = np.frombuffer((tmp_path / "result").read_bytes(), np.float32).reshape(3, 512)
    turned = values.reshape(-1, 128)[:, ::-1].ravel()
    assert np.array_equal(result[0], 2 * turned + np.float32(0.5))
    assert np.array_equal(result[1], -2 * turned + np.float32(0.5))
    assert np.array_equal(result[2], values)


@pytest.mark.device
def test_a_fat_binary_loads(gpu, tmp_path):
    """The driver takes the image for the card out of it."""
    ptxdsl.build(DATA / "shapes.pdsl", tmp_path, kernel="line", arch=("sm_80", "sm_90a"), formats="fatbin")
    gpu.zeros(1, device="cuda")
    function = current_driver().load((tmp_path / "line.fatbin").read_bytes(), "line")
    compiled = ptxdsl.load(DATA / "shapes.pdsl").line.compile("sm_90a")
    assert function.registers == compiled.resources["line"].registers
    assert ctypes.c_void_p(function.handle).value
