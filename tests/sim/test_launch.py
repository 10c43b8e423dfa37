"""What a launch checks before it runs, and how arguments become parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sim_kernels import kernel, run

from ptxdsl.diagnostics import CompileError, LaunchError
from ptxdsl.sim.launch import simulate
from ptxdsl.sim.limits import Limits
from ptxdsl.source import Source, Span

EMPTY = kernel("ret;")


@pytest.mark.parametrize(
    ("directives", "options", "words"),
    [
        ("", {"block": 1025}, "block.x is 1025; at most 1024 is possible"),
        ("", {"block": (64, 32)}, "block (64, 32, 1) has 2048 threads; at most 1024 are possible"),
        ("", {"grid": (1, 65536)}, "grid.y is 65536; at most 65535 is possible"),
        ("", {"grid": 0}, "grid.x is 0; it must be at least 1"),
        ("", {"grid": (1, 2, 3, 4)}, "grid has 4 dimensions; 1 to 3 are possible"),
        ("", {"block": 1.5}, "block.x must be an integer, got float"),
        ("", {"grid": 3, "cluster": 2}, "grid.x is 3, not a multiple of the cluster's 2"),
        ("", {"grid": 32, "cluster": 32}, "cluster (32, 1, 1) has 32 CTAs; at most 16 are possible"),
        (
            ".reqntid 64",
            {"block": 32},
            "runs with exactly (64, 1, 1) threads per block (`@kernel(threads=…)`, in PTX .reqntid); "
            "block is (32, 1, 1)",
        ),
        (
            ".maxntid 64",
            {"block": 96},
            "at most 64 threads per block (`@kernel(max_threads=…)`, in PTX .maxntid); block (96, 1, 1) has 96",
        ),
        (
            ".reqnctapercluster 2",
            {"grid": 4, "cluster": 4},
            "has clusters of (2, 1, 1) blocks (`@kernel(cluster=…)`, in PTX .reqnctapercluster); cluster is (4, 1, 1)",
        ),
        (".explicitcluster", {}, "wants a cluster to be given with its launch (.explicitcluster)"),
        (".reqntid 32 .reqnctapercluster 2 .blocksareclusters", {"grid": 2}, "is launched by clusters"),
        (".reqnctapercluster 2", {"grid": 3}, "grid.x is 3, not a multiple of the cluster's 2"),
        ("", {"shared_bytes": 300_000}, "300000 bytes of dynamic shared memory are given"),
        ("", {"shared_bytes": -1}, "dynamic shared memory is -1 bytes; it must not be negative"),
        ("", {"shared_bytes": "1"}, "dynamic shared memory must be a number of bytes, got str '1'"),
        ("", {"shared_bytes": True}, "dynamic shared memory must be a number of bytes, got bool True"),
        ("", {"shared_bytes": 10**60}, "dynamic shared memory is an int of 200 bits; no device has so many bytes"),
        ("", {"grid": True}, "grid.x must be an integer, got bool True"),
        ("", {"block": (32, np.bool_(True))}, "block.y must be an integer, got"),
        ("", {"block": 10**60}, "block.x is an int of 200 bits; at most 1024 is possible"),
        ("", {"cluster": (True, 1)}, "cluster.x must be an integer, got bool True"),
    ],
)
def test_a_launch_that_the_card_would_refuse(directives: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        run(kernel("ret;", directives=directives), **options)
    (found,) = caught.value.diagnostics
    assert found.code in ("E1100", "E1102") and words in found.message


def test_numbers_of_numpy_are_numbers() -> None:
    assert run(EMPTY, grid=np.int64(2), block=(np.uint8(32), 1), shared_bytes=np.int32(16)).finished
    assert run(EMPTY, limits=Limits(steps=np.int64(10**6), turns=np.uint16(9))).finished


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"limits": Limits(steps=True)}, "the limit steps is a whole number from 0, not True"),
        ({"limits": Limits(memory=1e9)}, "the limit memory is a whole number from 0, not 1000000000.0"),  # type: ignore[arg-type]
        ({"limits": Limits(idle_rounds=-1)}, "the limit idle_rounds is a whole number from 0, not -1"),
        ({"limits": 10}, "limits cannot be int 10"),
        ({"record": 1}, "record is True or False, not int 1"),
        ({"trace": "yes"}, "trace is True or False, not str 'yes'"),
    ],
)
def test_options_of_other_types(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError) as caught:
        run(EMPTY, **options)
    assert words in str(caught.value)


def test_clusters_need_hopper() -> None:
    with pytest.raises(LaunchError, match="clusters need sm_90 or later; the PTX is for sm_80"):
        run(kernel("ret;", target="sm_80"), grid=2, cluster=2)


@pytest.mark.parametrize(("target", "limit"), [("sm_80", 163), ("sm_89", 99), ("sm_90a", 227), ("sm_120a", 99)])
def test_shared_memory_of_a_target(target: str, limit: int) -> None:
    text = kernel("mov.u32 %r1, s; ret;", declarations=".shared .b8 s[1024];", target=target)
    assert run(text, shared_bytes=(limit - 1) << 10).finished
    with pytest.raises(
        LaunchError, match=f"too many: kernel 'k' has 1024 bytes of its own, and a CTA of {target} has {limit << 10}"
    ):
        run(text, shared_bytes=((limit - 1) << 10) + 1)


def test_a_kernels_own_cluster_is_the_default() -> None:
    out = np.zeros(4, np.uint32)
    body = """
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_nctarank; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, $out;
    st.global.u32 [%rd1], %r2; ret;
    """
    assert run(kernel(body, "out:u64", directives=".reqnctapercluster 2"), out, grid=4).finished
    assert out.tolist() == [2] * 4


# Arguments

COPY = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .{type} x{shape})
{{
 .reg .b64 %rd<3>; .reg .b32 %r<9>;
 ld.param.u64 %rd1, [out];
 {loads}
 ret;
}}
"""


def image(type: str, argument: Any, size: int, shape: str = "") -> bytes:
    """The bytes of a parameter as the kernel reads them."""
    loads = "".join(f"ld.param.u8 %r1, [x+{i}]; st.global.u8 [%rd1+{i}], %r1;\n" for i in range(size))
    out = np.zeros(size, np.uint8)
    assert run(COPY.format(type=type, shape=shape, loads=loads), out, argument).finished
    return out.tobytes()


@pytest.mark.parametrize(
    ("type", "argument", "expected"),
    [
        ("u32", 7, b"\7\0\0\0"),
        ("s32", -2, b"\xfe\xff\xff\xff"),
        ("u8", True, b"\1"),
        ("f32", 1.5, np.float32(1.5).tobytes()),
        ("b32", 1.5, np.float32(1.5).tobytes()),
        ("f64", 1.5, np.float64(1.5).tobytes()),
        ("b16", 1.5, np.float16(1.5).tobytes()),
        ("u64", np.int64(-1), b"\xff" * 8),
        ("b32", b"abcd", b"abcd"),
    ],
)
def test_numbers_become_the_parameters_bytes(type: str, argument: Any, expected: bytes) -> None:
    assert image(type, argument, len(expected)) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "kernel 'k' has 2 parameters (out: .u64, n: .u32); 0 arguments given"),
        ((np.zeros(1), 1 << 40), "argument 1 is 1099511627776, which does not fit the 4 bytes of its parameter"),
        ((np.zeros(1), b"12345"), "argument 1 has 5 bytes; the parameter .u32 has 4"),
        ((np.zeros(1), "x"), "argument 1 is a str"),
        ((np.zeros(4)[::-1], 1), "argument 0 cannot be used in place: its elements run backwards"),
        ((np.array([None, "x"]), 1), "argument 0 is an array of object"),
        ((np.zeros(1), np.float64(1)), "argument 1 has 8 bytes; the parameter .u32 has 4"),
        ((np.zeros(1), 1e300), "argument 1 is 1e+300, too large for a float of 32 bits"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(LaunchError) as caught:
        run(kernel("ret;", "out:u64 n:u32"), *arguments)
    (found,) = caught.value.diagnostics
    assert found.code == "E1101" and words in found.message


def test_variables_must_fit_the_memory() -> None:
    text = kernel("mov.u64 %rd1, x; ret;", declarations=".global .b8 x[1000000000000];")
    with pytest.raises(LaunchError, match="kernel 'k' names have 1,000,000,000,000 bytes; the limit is 4,294,967,296"):
        run(text)
    with pytest.raises(LaunchError, match="the simulation cannot begin"):
        run(text, limits=Limits(memory=1 << 50))


def test_what_is_not_supported_is_told_at_the_line_of_the_source() -> None:
    text = kernel("tex.1d.v4.s32.s32 {%r1,%r1,%r1,%r1}, [%rd1, {%r1}];\nsurq.b32 %r1, [%rd1];\nret;")
    source = Source("a.pdsl", "first\n  second\n")
    lines: list[Span | None] = [None] * text.count("\n")
    lines[text[: text.index("surq")].count("\n")] = source.line_span(2)
    with pytest.raises(CompileError) as caught:
        run(text, line_map=lines)
    first, second = caught.value.diagnostics
    assert first.span is not None and first.span.text.startswith("tex.1d") and not first.notes
    assert (str(second.span), second.code) == ("a.pdsl:2:3", "E1110")
    ((ptx, label),) = second.notes
    assert (ptx.text, label) == ("surq.b32 %r1, [%rd1];", "the PTX instruction")


def test_all_bad_arguments_are_told_with_their_names() -> None:
    with pytest.raises(LaunchError) as caught:
        run(kernel("ret;", "out:u64 n:u32"), "x", 2**32, names=["out", "n"])
    assert [d.message.split(" is ")[0] for d in caught.value.diagnostics] == ["argument 'out'", "argument 'n'"]


def test_a_kernel_is_named_where_there_are_several() -> None:
    two = EMPTY + ".visible .entry other() { ret; }\n"
    assert simulate(two, "other", grid=1, block=32).kernel == "other"
    with pytest.raises(CompileError, match="name the kernel to run"):
        simulate(two, grid=1, block=32)


def test_the_report_says_what_was_done() -> None:
    report = run(EMPTY, grid=3, block=64)
    assert report.render() == "kernel 'k': finished"
    assert (report.statistics.ctas, report.statistics.thread_instructions) == (3, 3 * 64)
