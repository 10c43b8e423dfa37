"""Reductions, broadcasts and scans of a block: against NumPy in the simulator, proved, and without races in a loop."""

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cli import main
from ptxdsl.driver import compile_source
from ptxdsl.source import Source

KERNEL = """
def product({pair}) -> {type}:
    return a * b


@kernel(threads={threads})
def one(x: Pointer[{type}, ImmutAnyOrigin], res: Pointer[{type}, MutAnyOrigin]):
    var i = (thread_idx.z * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x
    res[unsafe_offset=i] = {call}
"""
SHAPES = ["32", "96", "256", "1024", "(32, 8)", "(16, 2, 5)"]
CALLS = {
    "block_sum(x[unsafe_offset=i])": lambda x: np.full_like(x, x.sum()),
    "block_max(x[unsafe_offset=i])": lambda x: np.full_like(x, x.max()),
    "block_min(x[unsafe_offset=i])": lambda x: np.full_like(x, x.min()),
    "block_reduce[product](x[unsafe_offset=i])": lambda x: np.full_like(x, x.prod()),
    "block_broadcast(x[unsafe_offset=i])": lambda x: np.full_like(x, x[0]),
    "block_broadcast(x[unsafe_offset=i], 21)": lambda x: np.full_like(x, x[21]),
    "block_prefix_sum(x[unsafe_offset=i])": np.cumsum,
    "block_prefix_sum[exclusive=True](x[unsafe_offset=i])": lambda x: np.cumsum(x) - x,
}
DTYPES = {"Float32": np.float32, "Int32": np.int32, "Float64": np.float64, "UInt8": np.uint8}


def source(threads: str, call: str, kind: str = "Float32") -> str:
    return KERNEL.format(threads=threads, call=call, type=kind, pair=f"a: {kind}, b: {kind}")


def numbers(count: int, dtype: type) -> np.ndarray:
    """Whole, and so few other than 1 that all sums and products are exact."""
    found = np.ones(count, dtype)
    found[[3, 21, count - 2]] = 2, 5, 3
    return found


@pytest.mark.parametrize("threads", SHAPES)
@pytest.mark.parametrize("call", CALLS)
def test_every_thread_gets_what_numpy_says(threads, call):
    x = numbers(int(np.prod(eval(threads))), np.float32)
    res = np.full_like(x, np.nan)
    kernel = ptxdsl.loads(source(threads, call)).one
    assert kernel.simulate(x, res, schedule="random:5").finished
    np.testing.assert_array_equal(res, CALLS[call](x))


@pytest.mark.parametrize("kind", [kind for kind in DTYPES if kind != "Float32"])
@pytest.mark.parametrize("call", CALLS)
def test_of_every_type(kind, call):
    x = numbers(64, DTYPES[kind])
    res = np.zeros_like(x)
    assert ptxdsl.loads(source("64", call, kind)).one.simulate(x, res).finished
    np.testing.assert_array_equal(res, CALLS[call](x).astype(x.dtype))


def test_of_vectors():
    text = """
@kernel(threads=64)
def pairs(x: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    res.unsafe_store(2 * thread_idx.x, block_sum(x.unsafe_load[width=2](2 * thread_idx.x)))
"""
    x, res = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    assert ptxdsl.loads(text).pairs.simulate(x, res).finished
    np.testing.assert_array_equal(res, np.tile(x.reshape(64, 2).sum(0), 64))


LOOP = """
@kernel(threads=128)
def loop(res: Pointer[Float32, MutAnyOrigin], n: Int):
    var x = Float32(thread_idx.x)
    for _ in range(n):
        x = block_max(x) - block_prefix_sum(x) + block_broadcast(x, 5)
    res[unsafe_offset=thread_idx.x] = x
"""


def test_calls_in_a_loop_are_proved_and_free_of_races(tmp_path, capsys):
    (tmp_path / "loop.pdsl").write_text(LOOP)
    path = str(tmp_path / "loop.pdsl")
    assert main(["check", path]) == 0
    assert "kernel 'loop': proved" in capsys.readouterr().out
    assert main(["run", path, "--target", "sim", "--races", "--arg", "res=nan:f32:128", "--arg", "n=3"]) == 0
    assert "no race found" in capsys.readouterr().out


def test_a_loop_without_the_barrier_before_the_room_is_written_has_a_race(tmp_path, capsys):
    """So that what the test above does not find is there to be found: the barrier is what keeps turns apart."""
    text = """
@kernel(threads=128)
def loop(res: Pointer[Float32, MutAnyOrigin], n: Int):
    var room = unsafe_stack_allocation[4, Float32, address_space=.SHARED]()
    var x = Float32(thread_idx.x)
    for _ in range(n):
        x = warp_max(x)
        if lane_id() == 0:
            room[unsafe_offset=warp_id()] = x
        barrier()
        x = lane_group_max[4](room[unsafe_offset=lane_id() % 4])
    res[unsafe_offset=thread_idx.x] = x
"""
    (tmp_path / "loop.pdsl").write_text(text)
    run = ["run", str(tmp_path / "loop.pdsl"), "--target", "sim", "--races", "--arg", "res=nan:f32:128", "--arg", "n=3"]
    assert main(run) == 1
    assert "race" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "call", "words"),
    [
        (
            "",
            "block_sum(x)",
            "is not known: write @kernel(threads=256), or block_size=256",
        ),
        ("(threads=100)", "block_max(x)", "blocks of 32 to 1024 threads, a multiple of 32, not 100"),
        ("", "block_prefix_sum[block_size=2048](x)", "blocks of 32 to 1024 threads, a multiple of 32, not 2048"),
        (
            "(threads=128)",
            "block_sum[block_size=256](x)",
            "block_size is 256, and the kernel has blocks of 128 threads",
        ),
    ],
)
def test_blocks_that_are_not_the_kernels(options, call, words):
    text = f"@kernel{options}\ndef k(p: Pointer[Float32, MutAnyOrigin]):\n    var x = p[]\n    p[] = {call}\n"
    with pytest.raises(ptxdsl.CompileError) as caught:
        compile_source(Source("k.pdsl", text))
    (found,) = caught.value.diagnostics
    assert found.code == "E0407" and words in found.message and found.span.text == call


OF_SIZE = """
@kernel
def sums[size: Int](x: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var i = (thread_idx.z * block_dim.y + thread_idx.y) * block_dim.x + thread_idx.x
    res[unsafe_offset=i] = block_sum[block_size=size](x[unsafe_offset=i]) + block_broadcast(x[unsafe_offset=i])
"""


@pytest.mark.parametrize("block", [64, (8, 8), None])
def test_a_launch_has_as_many_threads_as_they_are_told(block):
    kernel = ptxdsl.loads(OF_SIZE).sums.specialize(size=64)
    x, res = numbers(64, np.float32), np.full(64, np.nan, np.float32)
    assert kernel.simulate(x, res, block=block).finished  # without a block it is theirs
    np.testing.assert_array_equal(res, np.full(64, x.sum() + x[0]))


@pytest.mark.parametrize("block", [32, 128, (64, 2)])
def test_a_launch_with_another_number_of_threads_is_refused(block):
    """They would add what other threads have left in shared memory."""
    kernel = ptxdsl.loads(OF_SIZE).sums.specialize(size=64)
    x = numbers(128, np.float32)
    for launch in (lambda: kernel.simulate(x, x, block=block), lambda: kernel[1, block](x, x, target="sim")):
        with pytest.raises(ptxdsl.LaunchError, match=r"E0908.*of blocks of 64 threads"):
            launch()


def test_the_command_knows_the_size_of_the_block(tmp_path, capsys):
    path = tmp_path / "sums.pdsl"
    path.write_text(OF_SIZE)
    arguments = [
        "run",
        str(path),
        "-D",
        "size=32",
        "--target",
        "sim",
        "--arg",
        "x=ones:f32:32",
        "--arg",
        "res=nan:f32:32",
    ]
    assert main([*arguments, "--expect", "res == 0 * x + 33"]) == 0
    assert main([*arguments, "--block", "64"]) == 1
    assert "error[E0908]" in capsys.readouterr().err
    for block in ((), ("--block", "64")):
        assert main(["check", str(path), "-D", "size=32", *block]) == 0
        assert capsys.readouterr().out.startswith("kernel 'sums_32': proved, for blocks of 32 threads")


def test_blocks_of_two_sizes():
    text = OF_SIZE.replace("block_broadcast(", "block_max[block_size=32](")
    with pytest.raises(ptxdsl.CompileError, match="this is of blocks of 32 threads") as caught:
        ptxdsl.loads(text).sums.specialize(size=64).compile()
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.span.line, problem.notes[0][1]) == ("E0407", 5, "this of blocks of 64")


def test_a_block_larger_than_any_launch():
    text = OF_SIZE.replace("@kernel\n", "@kernel(max_threads=(16, 2))\n")
    assert text != OF_SIZE
    ptxdsl.loads(text).sums.specialize(size=32).compile()
    with pytest.raises(ptxdsl.CompileError, match="of blocks of 64 threads, and a block has at most 32") as caught:
        ptxdsl.loads(text).sums.specialize(size=64).compile()
    assert [(problem.code, problem.help is None) for problem in caught.value.diagnostics] == [("E0407", False)]
