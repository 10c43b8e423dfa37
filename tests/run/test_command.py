"""``ptxdsl run`` as a user meets it: what is printed, the exit code, and every mistake with its words."""

import json

import numpy as np
import pytest

from ptxdsl.cli import main

KERNELS = """
@kernel(threads=64)
def scale[factor: Int = 2](x: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(global_idx.x)
    if i < n:
        x[unsafe_offset=i] = x[unsafe_offset=i] * Float32(factor)


@fieldwise_init
struct Line(TrivialRegisterPassable):
    var slope: Float32
    var offset: Float32


@kernel
def line(p: Line, flip: Bool, x: Pointer[BFloat16, MutAnyOrigin]):
    var i = Int32(thread_idx.x)
    var y = p.slope * Float32(x[unsafe_offset=i]) + p.offset
    x[unsafe_offset=i] = BFloat16(-y if flip else y)


@kernel
def stuck(x: Pointer[Int32, MutAnyOrigin]):
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(1)
        bars[unsafe_offset=1].init(1)
        x[0] = 5
        bars[unsafe_offset=1].wait(0)


@kernel
def beyond(x: Pointer[Int32, MutAnyOrigin]):
    x[unsafe_offset=Int32(thread_idx.x) + 1] = 1


@kernel
def dynamic(x: Pointer[Int32, MutAnyOrigin]):
    var room = external_memory[Int32, address_space=AddressSpace.SHARED, alignment=16]()
    room[unsafe_offset=thread_idx.x] = Int32(thread_idx.x)
    barrier()
    x[unsafe_offset=thread_idx.x] = room[unsafe_offset=31 - thread_idx.x]


from layout import dynamic_shared


@kernel(threads=32)
def counted(x: Pointer[Int32, MutAnyOrigin]):
    var room = dynamic_shared[128]().bitcast[Int32]()
    room[unsafe_offset=thread_idx.x] = Int32(thread_idx.x)
    barrier()
    x[unsafe_offset=thread_idx.x] = room[unsafe_offset=31 - thread_idx.x]
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    (tmp_path / "k.pdsl").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)

    def run(*arguments, file="k.pdsl"):
        code = main(["run", file, "--target", "sim", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


SCALE = ("--kernel", "scale", "--grid", "2", "--arg", "x=arange:f32:100")


def test_a_run_that_meets_its_expectation(run):
    code, out, err = run(*SCALE, "--arg", "n=90", "--expect", "x[:90] == 2 * x[:90]", "--expect", "x[90:] == x[90:]")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("kernel 'scale', grid 2, block 64 in the simulator (sm_90a): finished, ")
    assert lines[1] == "x: float32[100] = 0 2 4 6 8 10 …"
    assert lines[2:] == [
        "ok  x[:90] == 2 * x[:90]: equal (90 elements)",
        "ok  x[90:] == x[90:]: equal (10 elements)",
    ]


def test_a_missed_expectation_is_exit_code_1(run):
    code, out, _ = run(*SCALE, "--arg", "n=90", "--expect", "x == 2 * x")
    assert code == 1
    assert "FAILED  x == 2 * x: 10 of 100 elements differ" in out
    assert run(*SCALE, "--arg", "n=100", "--expect", "x == 2.001 * x", "--rtol", "1e-3")[0] == 0


def test_constants_targets_and_saved_arrays(run, tmp_path):
    code, out, _ = run(*SCALE, "--arg", "n=100", "-D", "factor=7", "--arch", "sm_120a", "--save", "x=out.npy")
    assert code == 0
    assert "(sm_120a)" in out
    assert np.array_equal(np.load(tmp_path / "out.npy"), 7 * np.arange(100, dtype=np.float32))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.pdsl", "out.npy"]
    code, _, _ = run("--kernel", "scale", "--arg", "x=out.npy", "--arg", "n=64", "--expect", "x[:64] == 2 * x[:64]")
    assert code == 0


def test_structs_bools_and_bfloat16(run):
    code, out, _ = run(
        "--kernel", "line", "--block", "8", "--arg", "p.slope=2", "--arg", "p.offset=f32:0.5", "--arg", "flip=True",
        "--arg", "x=arange:bf16:8", "--expect", "x == -(2 * x + 0.5)",
    )  # fmt: skip
    assert code == 0, out
    assert "x: bfloat16[8] = -0.5 -2.5 -4.5" in out


def test_dynamic_shared_memory_and_positions(run):
    code, out, _ = run(
        "--kernel", "dynamic", "--block", "32", "--smem", "128", "--arg", "0=zeros:i32:32", "--expect",
        "x == np.arange(32)[::-1]",
    )  # fmt: skip
    assert code == 0, out


@pytest.mark.parametrize("smem", [(), ("--smem", "128"), ("--smem", "4096")])
def test_dynamic_shared_memory_that_the_kernel_has_counted(run, smem):
    code, out, _ = run("--kernel", "counted", *smem, "--arg", "x=zeros:i32:32", "--expect", "x == np.arange(32)[::-1]")
    assert code == 0, out


@pytest.mark.parametrize("schedule", ["round-robin", "random:7", "slow:warp1"])
def test_schedules(run, schedule):
    assert run(*SCALE, "--arg", "n=100", "--schedule", schedule, "--expect", "x == 2 * x")[0] == 0


def test_a_deadlock_names_the_line_and_keeps_what_was_done(run):
    code, out, err = run("--kernel", "stuck", "--block", "32", "--arg", "x=zeros:i32:1")
    assert code == 1
    assert ": deadlock, " in out
    assert "x: int32[1] = 5" in out
    assert "k.pdsl:29:9" in err
    assert "bars[unsafe_offset=1].wait(0)" in err


def test_a_fault_names_the_access(run):
    code, out, err = run("--kernel", "beyond", "--block", "4", "--arg", "x=zeros:i32:4")
    assert code == 1
    assert ": fault, " in out
    assert "just past the end of argument 'x' (16 bytes" in err
    assert "k.pdsl:34:5" in err


def test_what_a_kernel_prints_is_printed(run, tmp_path):
    body = "    print('n is', n)\n    print('-', end='')\n"
    (tmp_path / "p.pdsl").write_text(f"@kernel(threads=2)\ndef k(n: Int32):\n{body}")
    code, out, err = run("--arg", "n=7", file="p.pdsl")
    assert (code, err) == (0, "")
    assert out.splitlines()[:-1] == ["n is 7", "n is 7", "--"]
    assert out.splitlines()[-1].startswith("kernel 'k', ")


def test_a_step_limit(run):
    code, out, err = run(*SCALE, "--arg", "n=100", "--steps", "10")
    assert code == 1
    assert ": limit, " in out
    assert "10" in err


def test_traces_are_written(run, tmp_path):
    assert run(*SCALE, "--arg", "n=100", "--trace", "t.json", "--timeline", "t.html")[0] == 0
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert "kernel scale" in (tmp_path / "t.html").read_text()


PTX = """.version 8.7
.target sm_90a
.address_size 64
.file 1 "a.cu"
.entry k(.param .u64 a) {
.reg .b64 %a; .reg .b32 %r;
ld.param.u64 %a, [a];
.loc 1 2 10
ld.global.u32 %r, [%a+4096];
ret;
}
"""


def test_a_fault_in_a_file_of_ptx_is_shown_at_its_source_where_that_is_there(run, tmp_path):
    (tmp_path / "k.ptx").write_text(PTX)
    arguments = ("--block", "1", "--arg", "0=zeros:f32:4")
    code, _, err = run(*arguments, file="k.ptx")
    assert code == 1 and " --> k.ptx:9:1\n" in err and "compiled from a.cu:2:10" in err and "<ptx>" not in err
    (tmp_path / "a.cu").write_text("__global__ void k(int *a) {\n  a[0] = a[1024];\n}\n")
    code, _, err = run(*arguments, file="k.ptx")
    assert code == 1 and " --> a.cu:2:10\n" in err and "note: the PTX instruction\n --> k.ptx:9:1\n" in err


def test_a_file_of_ptx(run, tmp_path, capsys):
    assert main(["compile", "k.pdsl", "--kernel", "scale", "-o", "k.ptx"]) == 0
    capsys.readouterr()
    arguments = ("--grid", "2", "--arg", "0=arange:f32:100", "--arg", "1=90")
    code, out, _ = run(*arguments, "--expect", "arg0[:90] == 2 * arg0[:90]", file="k.ptx")
    assert code == 0, out
    assert "arg0: float32[100] = 0 2 4" in out
    named = ("--arg", "scale_2_param_0=arange:f32:100", "--arg", "arg1=u32:90")
    assert run("--grid", "2", *named, file="k.ptx")[0] == 0
    assert run("--grid", "2", "--arg", "0=arange:f32:100", "--arg", "1=bytes:5a000000", file="k.ptx")[0] == 0


def test_a_struct_of_another_compiler_is_given_as_its_bytes(run, tmp_path):
    (tmp_path / "s.ptx").write_text("""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 k_param_0, .param .align 4 .b8 k_param_1[12])
{
    .reg .b64 %rd<2>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [k_param_0];
    ld.param.u32 %r1, [k_param_1+8];
    st.global.u32 [%rd1], %r1;
    ret;
}
""")
    given = ("--block", "1", "--arg", "0=zeros:u32:1")
    good = run(*given, "--arg", f"1=bytes:{'00' * 8}07000000", "--expect", "arg0 == 7", file="s.ptx")
    assert good[0] == 0, good
    for spec, words in (
        ("7", "cannot be a number"),
        ("zeros:u8:12", "cannot be an array"),
        ("bytes:07", "has 12 bytes"),
    ):
        code, _, err = run(*given, "--arg", f"1={spec}", file="s.ptx")
        assert code == 1 and err.startswith("error[E1018]: parameter 'arg1") and words in err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), "E1017", "has several kernels: scale, line, stuck, beyond, dynamic, counted"),
        (("--kernel", "scale"), "E1018", "parameter 'x: Pointer[Float32]' is given no value"),
        (("--kernel", "scale"), "E1018", "for example --arg x=zeros:f32:1024"),
        ((*SCALE, "--arg", "n=1", "--arch", ""), "E0702", "unknown target ''"),
        ((*SCALE, "--arg", "n=zeros:i32:4"), "E1018", "parameter 'n: Int32' cannot be an array"),
        ((*SCALE, "--arg", "n=f32:1"), "E1018", "parameter 'n: Int32' cannot be a number of type float32"),
        ((*SCALE, "--arg", "n=1.5"), "E0904", "argument 'n' of kernel 'scale_2' is an Int32"),
        ((*SCALE, "--arg", "n=3000000000"), "E0907", "does not fit Int32"),
        ((*SCALE, "--arg", "n=1", "--arg", "m=1"), "E1018", "has no parameter 'm'"),
        ((*SCALE, "--arg", "n=1", "--arg", "1=2"), "E1014", "--arg gives 'n' twice, once by its position 1"),
        (("--kernel", "scale", "--arg", "x=5", "--arg", "n=1"), "E1018", "cannot be a number"),
        (("--kernel", "scale", "--arg", "x=zeros:f64:4", "--arg", "n=1"), "E0904", "got an array of float64"),
        (("--kernel", "scale", "--arg", "x=zeros:f32:4:box=4", "--arg", "n=1"), "E1018", "is not a TensorMap"),
        ((*SCALE, "--arg", "n=1", "--block", "32"), "E", "64"),
        ((*SCALE, "--arg", "n=1", "--save", "y=y.npy"), "E1018", "no argument of that name is an array"),
        ((*SCALE, "--arg", "n=1", "--save", "x"), "E1013", "expected NAME=FILE.npy"),
        ((*SCALE, "--arg", "n=1", "--save", "x=no/such/x.npy"), "E1007", "cannot write 'no/such/x.npy'"),
        ((*SCALE, "--arg", "n=1", "--expect", "y == 1"), "E1016", "name 'y' is not defined"),
        ((*SCALE, "--arg", "n=1", "--schedule", "fast"), "E1103", "schedule 'fast' is not valid"),
        ((*SCALE, "--arg", "n=1", "--schedule", "k.pdsl"), "E1103", "the file 'k.pdsl' is not a recorded schedule"),
        (("--kernel", "line", "--arg", "x=zeros:bf16:4"), "E1018", "parameter 'p.slope: Float32' is given no value"),
        (("--kernel", "line", "--arg", "x=zeros:bf16:4", "--arg", "p=1"), "E1018", "parameter 'p: Line' is a struct"),
        (("--kernel", "beyond", "--arg", "x=zeros:i32:4"), "E1020", "does not say the size of its block"),
        (("--kernel", "dynamic", "--block", "32", "--arg", "x=zeros:i32:32"), "E1020", "uses dynamic shared memory"),
        (
            ("--kernel", "counted", "--arg", "x=zeros:i32:32", "--smem", "64"),
            "E0909",
            "--smem is 64 bytes; kernel 'counted' uses 128 bytes of dynamic shared memory",
        ),
    ],
)
def test_mistakes(run, arguments, code, words):
    exit_code, out, err = run(*arguments)
    assert exit_code == 1
    assert out == ""
    assert f"error[{code}" in err
    assert words in err


TILES = """
from layout import SharedTile
from tma import tma_store

@kernel(threads=32)
def zeros(res: TensorMap):
    var memory = unsafe_stack_allocation[1024, UInt8, address_space=.SHARED, alignment=1024]()
    var tile = SharedTile[DType.float32, 8, 32](memory)
    for row in range(Int32(8)):
        tile.store(row, Int32(lane_id()), Float32(0))
    fence_proxy_async[AddressSpace.SHARED]()
    syncwarp()
    if thread_idx.x == 0:
        tma_store(res, [0, 0], tile)
        cp_async_bulk_commit_group()
        cp_async_bulk_wait_group[0, read=False]()
"""


@pytest.mark.parametrize(
    ("map", "words"),
    [("box=8x32", "the swizzle 'none' instead of '128B'"), ("box=4x32:swizzle=128B", "4 rows instead of 8")],
)
def test_a_tensor_map_with_another_box_or_swizzle(run, tmp_path, map, words):
    (tmp_path / "tiles.pdsl").write_text(TILES)
    code, _, err = run("--arg", f"res=ones:f32:8x32:{map}", file="tiles.pdsl")
    assert code == 1 and "error[E0923]: argument 'res'" in err and words in err
    code, out, _ = run("--arg", "res=ones:f32:8x32:box=8x32:swizzle=128B", "--expect", "res == 0", file="tiles.pdsl")
    assert code == 0 and "equal (256 elements)" in out


def test_json_holds_the_diagnostics(run):
    _, _, err = run("--kernel", "beyond", "--block", "4", "--arg", "x=zeros:i32:4", "--json")
    (found,) = json.loads(err)["diagnostics"]
    assert found["start"] == {"line": 34, "column": 5}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--trace", "k.pdsl"), "the output 'k.pdsl' is the file that is read"),
        (("--timeline", "./k.pdsl"), "the output './k.pdsl' is the file that is read"),
        (("--schedule", "turns.json", "--trace", "turns.json"), "the output 'turns.json' is the file that is read"),
        (("--trace", "out", "--timeline", "./out"), "--trace and --timeline both write './out'"),
        (("--save", "x=x.npy", "--save", "n=x.npy"), "--save x and --save n both write 'x.npy'"),
    ],
)
def test_outputs_never_take_the_place_of_what_is_read(run, tmp_path, arguments, words):
    turns = '{"names": ["cta0.warp0"], "turns": []}'
    (tmp_path / "turns.json").write_text(turns)
    exit_code, out, err = run(*SCALE, "--arg", "n=1", *arguments)
    assert (exit_code, out) == (1, "") and err.startswith(f"error[E1012]: {words}\n")
    assert (tmp_path / "k.pdsl").read_text() == KERNELS and (tmp_path / "turns.json").read_text() == turns
    assert sorted(p.name for p in tmp_path.iterdir()) == ["k.pdsl", "turns.json"]


def test_an_array_is_saved_as_often_as_asked_for(run, tmp_path):
    assert run(*SCALE, "--arg", "n=90", "--save", "x=a.npy", "--save", "x=b.npy")[0] == 0
    assert np.load(tmp_path / "a.npy").tolist() == np.load(tmp_path / "b.npy").tolist()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--grid", "0", "'0' is not a shape"),
        ("--grid", "4x", "'4x' is not a shape"),
        ("--grid", "9" * 5000, "is not a shape"),
        ("--block", "1x2x3x4", "is not a shape"),
        ("--smem", "much", "invalid int value"),
        ("--steps", "0", "'0' is not a number from 1"),
        ("--steps", "-5", "'-5' is not a number from 1"),
        ("--rtol", "nan", "'nan' is not a tolerance"),
        ("--atol", "-1e-3", "'-1e-3' is not a tolerance"),
    ],
)
def test_usage(run, option, value, words):
    code, out, err = run(f"{option}={value}")
    assert (code, out) == (2, "") and words in err


def test_an_array_in_pieces_has_the_source_s_name(run, tmp_path):
    """LLVM makes variables of their own of elements that it can tell apart."""
    (tmp_path / "pieces.pdsl").write_text("""
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    tile[unsafe_offset=0] = src[unsafe_offset=thread_idx.x]
    barrier()
    res[unsafe_offset=thread_idx.x] = tile[unsafe_offset=0]
""")
    arguments = ("--arg", "src=arange:f32:64", "--arg", "res=nan:f32:64", "--races")
    _, _, said = run(*arguments, file="pieces.pdsl")
    assert "warp 1 writes tile in shared memory" in said


def test_a_grid_that_is_given_is_taken_before_the_witness_s(run, tmp_path):
    (tmp_path / "apart.pdsl").write_text("""
from cluster import block_rank_in_cluster, cluster_sync, mapa

@kernel(threads=64, cluster=2)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    var i = Int32(thread_idx.x)
    cluster_sync()
    var peer = mapa(tile, block_rank_in_cluster() ^ 1).address_space_cast[.GENERIC]()
    peer[unsafe_offset=i] = 1.0
    tile[unsafe_offset=63 - i] = 2.0
    cluster_sync()
    res[unsafe_offset=i] = tile[unsafe_offset=i]
""")
    assert main(["check", "apart.pdsl", "--witness", "shown"]) == 1
    (witness,) = (tmp_path / "shown").iterdir()
    assert json.loads(witness.read_text())["launch"]["grid"] == [2, 1, 1]
    assert "grid 2," in run("--schedule", str(witness), file="apart.pdsl")[1]
    assert "grid 4," in run("--schedule", str(witness), "--grid", "4", file="apart.pdsl")[1]
    code, _, said = run("--schedule", str(witness), "--grid", "1", file="apart.pdsl")
    assert code == 1 and "grid.x is 1, not a multiple" in said
