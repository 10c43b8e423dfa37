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
    ("09_gemm_ampere", "gemm", {"STAGES": "1"}, "there are 2 or more, not 1"),
    ("09_gemm_ampere", "gemm", {"T": "DType.float32"}, "matrices are of bfloat16 or float16, not of DType.float32"),
    ("08_gemm_hopper", "gemm", {"GROUPS": "3", "BN": "208"}, "3 groups have tiles of up to 192 columns"),
    ("08_gemm_hopper", "gemm", {"A_MN": "True", "A_ROWS": "32"}, "an MN-major A is loaded by 64 rows, not 32"),
    ("08_gemm_hopper", "gemm", {"B_MN": "True", "BN": "144"}, "an MN-major B is loaded by 64 columns, not 144"),
    ("10_gemm_blackwell", "gemm", {"B_MN": "True", "BN": "64", "CTAS": "2"}, "by 64 columns, not 32"),
    ("10_gemm_blackwell", "gemm", {"C": "DType.int32"}, "the sums of products of DType.bfloat16 are DType.float32"),
    (
        "10_gemm_blackwell",
        "gemm",
        {"C": "DType.int32", "T": "DType.uint8", "E": "Scale"},
        "the sums of DType.uint8 are stored in DType.int32 as they are, without an epilogue",
    ),
    ("10_gemm_blackwell", "gemm_scaled", {"BLOCK": "0"}, "a factor is for 16 or 32 elements, not for 0"),
    ("08_gemm_hopper", "gemm", {"C_STAGES": "0"}, "a ring of 1 box or more, not 0"),
    ("08_gemm_hopper", "gemm", {"CLUSTER": "0"}, "a cluster has 1 block or more, not 0"),
    ("08_gemm_hopper", "gemm", {"SPLIT": "0"}, "a cluster has 1 block or more, not 0"),
    ("08_gemm_hopper", "gemm", {"BN": "24"}, "a multiple of 16 columns up to 256, not 24"),
    ("08_gemm_hopper", "gemm", {"BN": "0"}, "a multiple of 16 columns up to 256, not 0"),
    ("08_gemm_hopper", "gemm", {"BN": "272"}, "a multiple of 16 columns up to 256, not 272"),
    ("08_gemm_hopper", "gemm", {"SPLIT": "3"}, "a multiple of 48 columns up to 256, not 256"),
    ("08_gemm_hopper", "gemm", {"T": "DType.float64"}, "wgmma does not multiply DType.float64"),
    ("08_gemm_hopper", "gemm", {"T_B": "DType.float16"}, "does not multiply DType.bfloat16 by DType.float16"),
    ("08_gemm_hopper", "gemm", {"T": "DType.int8", "B_MN": "True"}, "only types of 16 bits may be MN-major"),
    ("08_gemm_hopper", "gemm", {"C": "DType.int8"}, "C is bfloat16, float16, float32 or int32, not DType.int8"),
    ("08_gemm_hopper", "gemm", {"A_ROWS": "0"}, "do not load a multiple of 8 rows each of A's 0"),
    ("11_gemm_stream_k", "gemm", {"BN": "264"}, "a tile has 8, 16, … 256 columns, not 264"),
    ("10_gemm_blackwell", "gemm", {"CTAS": "3"}, "CTAS is 1 or 2, not 3"),
    ("10_gemm_blackwell", "gemm", {"STAGES": "0"}, "a ring of 1 stage or more, not 0"),
    ("10_gemm_blackwell", "gemm", {"BN": "512"}, "a multiple of 64 columns up to 256, not 512"),
    ("10_gemm_blackwell", "gemm", {"BN": "32"}, "a multiple of 64 columns up to 256, not 32"),
    ("10_gemm_blackwell", "gemm", {"T": "DType.int32"}, "tcgen05 does not multiply DType.int32"),
    ("10_gemm_blackwell", "gemm_scaled", {"T": "DType.int8"}, "DType.int8 by DType.int8 with scale factors"),
    ("10_gemm_blackwell", "gemm_scaled", {"S": "DType.float8_e4m3fn"}, "factors for DType.float8_e4m3fn are uint8"),
    ("10_gemm_blackwell", "gemm_scaled", {"BN": "192"}, "are copied for a multiple of 128 columns, not 192"),
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
    line = found.span.source.text[: found.span.end].rpartition("\n")[2]
    assert line.lstrip().startswith(("comptime assert", "check_"))  # where the parameters are looked at


ELSEWHERE = [
    (
        "08_gemm_hopper",
        "sm_100a",
        {},
        "`gemm` does not exist on sm_100a: warpgroup matrix multiply (wgmma) needs sm_90a",
    ),
    ("11_gemm_stream_k", "sm_100a", {}, "`gemm` does not exist on sm_100a: warpgroup matrix multiply (wgmma) needs"),
    (
        "10_gemm_blackwell",
        "sm_90a",
        {},
        "`gemm` does not exist on sm_90a: fifth-generation tensor cores (tcgen05) need",
    ),
    ("10_gemm_blackwell", "sm_103a", {"T": "DType.int8"}, "a product of DType.int8 does not exist on sm_103a: "),
    ("10_gemm_blackwell", "sm_103a", {"T": "DType.uint8"}, "a product of DType.uint8 does not exist on sm_103a: "),
]


@pytest.mark.parametrize(("name", "arch", "constants", "said"), ELSEWHERE)
def test_targets_that_lack_the_instructions(name, arch, constants, said):
    (path,) = (path for path in SAMPLES if path.stem == name)
    source = read_source(path, path.name)
    with pytest.raises(CompileError) as caught:
        compile_source(source, kernel="gemm", constants=constants, options=Options(arch=arch))
    found = caught.value.diagnostics[0]
    assert found.code == "E0701" and found.message.startswith(said)


@pytest.mark.parametrize("letter", "ab")
def test_kernels_a_and_b_are_the_reference_files_own(letter):
    def body(text: str) -> str:
        return text[text.index("def kernel(") :].split("\n\ndef main")[0].rstrip()

    (sample,) = (path for path in SAMPLES if path.stem.endswith(f"kernel_{letter}"))
    reference = ROOT / "tests" / "data" / "oracle" / f"kernel_{letter}.mojo"
    assert body(sample.read_text()) == body(reference.read_text())
