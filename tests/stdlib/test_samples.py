"""The samples: a header says what each shows and how to run it, and it compiles for every target named there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxdsl.backend.assemble import assemble
from ptxdsl.diagnostics import CompileError
from ptxdsl.driver import compile_source
from ptxdsl.kernel_cache import compile_kernel
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.pdsl"))


def header(path: Path) -> dict[str, str]:
    """The entries of the comment at the top; lines that are indented further continue the one before."""
    comment = "\n".join(line[1:] for line in re.findall(r"\A(?:#.*\n)+", path.read_text())[0].splitlines())
    joined = re.sub(r"\n {2,}", " ", comment)
    return dict(line.strip().split(": ", 1) for line in joined.splitlines())


CASES = [(path, arch) for path in SAMPLES for arch in header(path)["targets"].split(", ")]


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_header(path):
    told = header(path)
    assert list(told) == [path.name, "run", "targets", "launch", "args", "result"]
    assert told["run"].startswith(f"ptxdsl run samples/{path.name} ")
    assert "--expect" in told["run"]
    memory = r"(no|\d+ bytes of) dynamic shared memory"
    assert re.fullmatch(rf"grid \d+, block \d+, {memory}", told["launch"])
    assert re.match(r"\w+ == ", told["result"])


@pytest.mark.parametrize(("path", "arch"), CASES, ids=[f"{path.stem}-{arch}" for path, arch in CASES])
def test_sample_compiles(path, arch, ptxas):
    first = header(path)["targets"].split(", ")[0]  # nothing that is proved depends on the target
    options = Options(arch=arch, check="warn" if arch == first else "off")
    compiled = compile_kernel(read_source(path, path.name), None, (), options)  # other tests find it in the cache
    assert not compiled.warnings
    assembled = assemble(compiled.ptx, options, compiled.line_map)
    assert all(found.spill_stores == found.spill_loads == 0 for found in assembled.resources.values())


WRONG = [
    ("08_gemm_hopper", "gemm", {"STAGES": "1"}, "there are 2 or more, not 1"),
    ("11_gemm_stream_k", "gemm", {"STAGES": "1"}, "there are 2 or more, not 1"),
    ("08_gemm_hopper", "gemm", {"GROUPS": "4", "BN": "64"}, "has warps that store for 3 others, not 4"),
    (
        "08_gemm_hopper",
        "gemm",
        {"A_ROWS": "256"},
        "1 and 1 blocks do not load a multiple of 8 rows each of A's 256 (of 128)",
    ),
    ("08_gemm_hopper", "gemm", {"CLUSTER": "3"}, "1 and 3 blocks do not load a multiple of 8 rows each"),
    ("08_gemm_hopper", "gemm", {"SIDEWAYS": "True", "CLUSTER": "3"}, "3 and 1 blocks do not load a multiple of 8 rows"),
    ("08_gemm_hopper", "gemm", {"C": "DType.int32"}, "the sums of products of DType.bfloat16 are DType.float32"),
    (
        "08_gemm_hopper",
        "gemm",
        {"C": "DType.int32", "T": "DType.int8", "E": "Relu"},
        "the sums of DType.int8 are stored in DType.int32 as they are, without an epilogue",
    ),
    ("09_gemm_ampere", "gemm", {"STAGES": "1"}, "a wait leaves 0 or more groups under way, not -1"),
    ("10_gemm_blackwell", "gemm", {"C": "DType.int32"}, "the sums of products of DType.bfloat16 are DType.float32"),
    (
        "10_gemm_blackwell",
        "gemm",
        {"C": "DType.int32", "T": "DType.uint8", "E": "Scale"},
        "the sums of DType.uint8 are stored in DType.int32 as they are, without an epilogue",
    ),
    ("10_gemm_blackwell", "gemm_scaled", {"BLOCK": "0"}, "a factor is for 16 or 32 elements, not for 0"),
]


@pytest.mark.parametrize(("name", "kernel", "constants", "said"), WRONG)
def test_constants_that_cannot_be(name, kernel, constants, said):
    (path,) = (path for path in SAMPLES if path.stem == name)
    options = Options(arch=header(path)["targets"].split(", ")[0])
    with pytest.raises(CompileError) as caught:
        compile_source(read_source(path, path.name), kernel=kernel, constants=constants, options=options)
    found = caught.value.diagnostics[0]
    assert found.code == "E0407"
    assert said in found.message


@pytest.mark.parametrize("letter", "ab")
def test_kernels_a_and_b_are_the_reference_files_own(letter):
    def body(text: str) -> str:
        return text[text.index("def kernel(") :].split("\n\ndef main")[0].rstrip()

    (sample,) = (path for path in SAMPLES if path.stem.endswith(f"kernel_{letter}"))
    reference = ROOT / "tests" / "data" / "oracle" / f"kernel_{letter}.mojo"
    assert body(sample.read_text()) == body(reference.read_text())
