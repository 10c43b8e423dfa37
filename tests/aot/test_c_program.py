"""The files of ``--format c``: they compile without a word, and a program that uses them launches what it says.

The driver is one in C that prints what it is asked to do (tests/data/c_program/libcuda.c); tests/device has the card.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

import ptxdsl

DATA = Path(__file__).parents[1] / "data" / "c_program"
SIZES = {"line": "8 8 4 4 2 1", "tile": "128 8"}


@pytest.fixture(scope="module")
def program(c_compiler, tmp_path_factory):
    """Runs the program; its output's lines."""
    folder = tmp_path_factory.mktemp("c")
    ptxdsl.build(DATA / "shapes.pdsl", folder)
    c_compiler("gcc", "-std=c99", "-shared", "-fPIC", DATA / "libcuda.c", "-o", folder / "libcuda.so.1")
    sources = DATA / "program.c", folder / "shapes.c", folder / "libcuda.so.1"
    c_compiler("gcc", "-std=c11", f"-I{folder}", *sources, "-o", folder / "program")
    (folder / "source").write_bytes(struct.pack("512f", *range(512)))

    def run(code=0, **environment):
        done = subprocess.run(
            [folder / "program", "source", "result"], cwd=folder, capture_output=True, text=True, check=False,
            env={**os.environ, **SIZES, **environment, "LD_LIBRARY_PATH": str(folder)},
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout.splitlines() if code == 0 else done.stderr.splitlines()

    return run


@pytest.fixture(scope="module")
def lines(program):
    return program()


@pytest.mark.parametrize(("compiler", "standard"), [("gcc", "c99"), ("gcc", "c17"), ("g++", "c++17")])
def test_it_compiles_without_a_word(c_compiler, tmp_path, compiler, standard):
    ptxdsl.build(DATA / "shapes.pdsl", tmp_path)
    language = ["-x", "c++"] if compiler == "g++" else []
    c_compiler(compiler, *language, f"-std={standard}", "-c", tmp_path / "shapes.c", "-o", tmp_path / "shapes.o")


def test_launches_arrive(lines):
    first, second, third = (line for line in lines if line.startswith("launch"))
    n, scale, half = struct.pack("<i", 512).hex(), struct.pack("<f", 2).hex(), "003f"
    assert re.fullmatch(
        rf"launch line grid 4 1 1 block 128 1 1 shared 65536 \w{{16}} \w{{16}} {n} {scale} {half} 00", first
    )
    # attributes of the driver: 4 is the cluster, 6 programmatic stream serialisation, 2 cooperative
    head = "launch line grid 4 1 1 block 128 1 1 shared 65536 attribute 4 2 attribute 6 1 "
    assert second.startswith(head) and second.endswith(f"{n} {scale} {half} 01")
    src, res = first.split()[-6:-4]
    assert second.split()[-6:-4] == [src, struct.pack("<Q", struct.unpack("<Q", bytes.fromhex(res))[0] + 2048).hex()]
    assert third.startswith(f"launch tile grid 2 1 1 block 32 1 1 shared 1024 attribute 2 1 {'ab' * 128} ")


def test_what_is_set_and_given_back(lines):
    """8 allows dynamic shared memory (what the device has but the kernel's own), 14 clusters of more than 8."""
    found = [line for line in lines if line.startswith("set")]
    assert found == [f"set {kernel} {rest}" for kernel in ("line", "tile") for rest in ("8 231424", "14 1")]
    assert [line for line in lines if line.startswith("unload")] == ["unload it"]
    assert lines[-1] == "done"


INVALID, NO_BINARY, HANDLE, CONTEXT = 1, 209, 400, 201  # of cuda.h


@pytest.mark.parametrize(
    ("what", "result", "words"),
    [
        ("no context", CONTEXT, "the thread has no CUDA context that can be used: other words (CUDA_ERROR_OTHER)"),
        ("not loaded", HANDLE, "kernel 'line' is not loaded"),
        ("grid[0]", INVALID, "grid.x of kernel 'line' is 0; it must be at least 1"),
        ("grid[1]", INVALID, "grid.y of kernel 'line' is 70000; the device allows at most 65535"),
        ("block[0]", INVALID, "kernel 'line' is declared for at most 256 threads per block; block has 257"),
        ("block[2]", INVALID, "block.z of kernel 'line' is 65; the device allows at most 64"),
        ("cluster[0]", INVALID, "grid.x of kernel 'line' is 4, not a multiple of the cluster's 3"),
        ("cluster[1]", INVALID, "cluster.x of kernel 'line' is 0; it must be at least 1"),
        ("shared_bytes", INVALID, "kernel 'line' uses dynamic shared memory (external_memory), and shared_bytes is 0"),
        ("shared_bytes", INVALID, "shared_bytes is 1048576; beside the 1024 bytes that kernel 'line' has of its own, "
         "231424 are left"),
        ("alignment", INVALID, "argument 'src' of kernel 'line' is not a multiple of 4"),
        ("threads", INVALID, "kernel 'tile' runs with exactly (32, 1, 1) threads per block; block is (128, 1, 1)"),
        ("cluster", INVALID, "grid.x of kernel 'tile' is 3, not a multiple of the cluster's 2"),
        ("bytes", INVALID, "shared_bytes is 1000; kernel 'tile' uses 1024 bytes of dynamic shared memory "
         "(0 gives it as many)"),
        ("map", INVALID, "argument 'source' of kernel 'tile' is NULL, or not a multiple of 64"),
    ],
)  # fmt: skip
def test_what_is_refused(lines, what, result, words):
    assert f"{what}: {result} {words}" in lines


def test_ptx_is_tried_where_machine_code_does_not_load(program, ptxas):
    loads = [line for line in program(STUB_REFUSES="elf") if line.startswith("load")]
    assert loads == ["load elf", "load ptx"]


def test_code_that_does_not_load(program):
    (said,) = program(code=1, STUB_REFUSES="all")
    assert said == (
        "the code for sm_90a does not load on this device of compute capability 9.0: no kernel image "
        "(CUDA_ERROR_NO_BINARY_FOR_GPU)"
    )
