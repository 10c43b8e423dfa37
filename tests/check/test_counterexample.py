"""Witness files: what ``ptxdsl check --witness`` and ``ptxdsl run --explore`` write is replayed to that very fault."""

import json
import re

import pytest
from proofs import expected
from traced import EXAMPLES, FAULTS, ROOT

from ptxdsl.cli import main

FAULTY = [path for path in EXAMPLES if path.stem.endswith("_faulty")]


def command(capsys, *words):
    """Exit code, standard output, standard error."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def example(stem):
    return next(path for path in (*EXAMPLES, *FAULTS) if path.stem == stem)


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_a_fault_of_the_proof_is_replayed(path, tmp_path, capsys):
    code, out, _ = command(capsys, "check", path, "--block", 64, "--witness", tmp_path)
    (witness,) = tmp_path.iterdir()
    assert code == 1 and f"ptxdsl run {path} --schedule {witness}  shows E1" in out
    told = json.loads(witness.read_text())
    code, out, err = command(capsys, "run", path, "--schedule", witness)
    assert code == 1
    shown, line = re.match(r"(E\d+) at line (\d+)", told["shows"]).groups()
    assert f"error[{shown}]" in err and f"{path}:{line}:" in err
    assert int(line) in expected(path.read_text()).lines
    assert ("races: 1 race found" in out) == told["races"]


def test_what_ends_wrong_is_compared_with_another_schedule(tmp_path, capsys):
    path = example("slot_index_after_step_faulty")
    command(capsys, "check", path, "--block", 64, "--witness", tmp_path)
    code, out, _ = command(capsys, "run", path, "--schedule", tmp_path / "kernel-E1211.json")
    assert code == 1 and "finished" in out
    assert "FAILED  res: 32 of 65536 elements are not those of --schedule round-robin" in out


@pytest.mark.parametrize("stages", [1, 3])
def test_constants_are_in_the_file(stages, tmp_path, capsys):
    path = example("07_copy_on_one_path_faulty")
    _, out, _ = command(capsys, "check", path, "-D", f"STAGES={stages}", "--witness", tmp_path)
    (witness,) = tmp_path.iterdir()
    assert json.loads(witness.read_text())["launch"]["args"]["n"] == "2"
    code, out, err = command(capsys, "run", path, "--schedule", witness)
    assert code == 1 and "deadlock" in out and "error[E1190]" in err
    code, out, _ = command(capsys, "run", path, "--schedule", witness, "--arg", "n=0")  # what it says itself counts
    assert code == 0 and "finished" in out


BOOL = """\
from helpers import mirrored
@kernel(threads=64)
def k(p: Pointer[Float32, MutAnyOrigin], skips: Bool):
    var s = stack_allocation[64, Float32, address_space=.SHARED]()
    s[thread_idx.x] = p[thread_idx.x]
    if {condition}:
        barrier()
    p[thread_idx.x] = s[mirrored(thread_idx.x)]
"""


@pytest.mark.parametrize(("condition", "value"), [("skips", "False"), ("not skips", "True")])
def test_a_bool_and_a_module_of_another_folder(condition, value, tmp_path, capsys):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "helpers.pdsl").write_text("def mirrored(i: Int) -> Int:\n    return 63 - i\n")
    (tmp_path / "program").mkdir()
    path, found = tmp_path / "program" / "k.pdsl", tmp_path / "found"
    path.write_text(BOOL.format(condition=condition))
    code, _, err = command(capsys, "check", path, "-I", tmp_path / "shared", "--witness", found)
    assert code == 1 and f"it shows with skips = {value}" in err
    (witness,) = found.iterdir()
    assert json.loads(witness.read_text())["launch"]["args"]["skips"] == value
    code, _, err = command(capsys, "run", path, "-I", tmp_path / "shared", "--schedule", witness)
    assert code == 1 and "error[E1215]" in err


def test_a_race_between_lanes_is_replayed(tmp_path, capsys):
    path = ROOT / "tests" / "check" / "faulty" / "22_lanes_have_not_met.pdsl"
    _, out, _ = command(capsys, "check", path, "--witness", tmp_path)
    (witness,) = tmp_path.iterdir()
    assert "shows E1215 at line 19: data race" in out and json.loads(witness.read_text())["lanes"]
    code, out, err = command(capsys, "run", path, "--schedule", witness)
    assert code == 1 and "races: 1 race found" in out
    assert "error[E1215]: data race: lane 0 of warp 0 reads all[31] in shared memory" in err


def test_json_has_the_files(tmp_path, capsys):
    path = example("cyclic_opposite_order_faulty")
    _, out, err = command(capsys, "check", path, "--block", 64, "--witness", tmp_path, "--json")
    assert not out
    assert json.loads(err)["verdicts"][0]["witnesses"] == [str(tmp_path / "kernel-E1212.json")]


def test_what_is_proved_has_no_witness(tmp_path, capsys):
    path = example("cyclic_opposite_order_clean")
    code, out, _ = command(capsys, "check", path, "--block", 64, "--witness", tmp_path / "new")
    assert code == 0 and out == "kernel 'kernel': proved\n" and not list((tmp_path / "new").iterdir())


MAPS = """\
from tma import cp_async_bulk_tensor_shared_cluster_global

@kernel(threads=32)
def kernel(m: TensorMap, res: Pointer[Float32, MutAnyOrigin]):
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x == 0:
        bars[].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(512)
        cp_async_bulk_tensor_shared_cluster_global[bytes=256](tile, m, bars, [Int32(0), Int32(0)])
    barrier()
    bars[].wait(0)
    res[unsafe_offset=Int32(thread_idx.x)] = tile[unsafe_offset=Int32(thread_idx.x)]
"""


def test_tensor_maps_are_given(tmp_path, capsys):
    path = tmp_path / "maps.pdsl"
    path.write_text(MAPS)
    _, out, err = command(capsys, "check", path, "--witness", tmp_path / "w")
    assert "no witness without --arg m=…" in out, err
    code, out, _ = command(
        capsys,
        "check",
        path,
        "--witness",
        tmp_path / "w",
        "--arg",
        "m=zeros:f32:8x8:box=8x8",
        "--arg",
        "res=zeros:f32:64",
    )
    (witness,) = (tmp_path / "w").iterdir()
    code, out, _ = command(capsys, "run", path, "--schedule", witness)
    assert code == 1 and "deadlock" in out


def test_as_much_dynamic_shared_memory_as_there_is(tmp_path, capsys):
    path = ROOT / "tests" / "check" / "faulty" / "24_freed_too_early.pdsl"
    maps = [f"{name}=ones:bf16:{rows}x64:box={rows}x64:swizzle=128B" for name, rows in (("a", 128), ("b", 64))]
    given = ["--arg", maps[0], "--arg", maps[1], "--arch", "sm_100a"]
    command(capsys, "check", path, "--witness", tmp_path, *given)
    (witness,) = tmp_path.iterdir()
    code, _, err = command(capsys, "run", path, "--schedule", witness)
    assert code == 1 and f"error[{json.loads(witness.read_text())['shows'][:5]}]" in err


def test_a_file_that_was_changed_is_told(tmp_path, capsys):
    path = example("cyclic_opposite_order_faulty")
    command(capsys, "check", path, "--block", 64, "--witness", tmp_path)
    file = tmp_path / "kernel-E1212.json"
    told = json.loads(file.read_text())
    told["launch"]["grid"] = [1]
    file.write_text(json.dumps(told))
    code, _, err = command(capsys, "run", path, "--schedule", file)
    assert code == 1 and "error[E1103]: the launch of a witness cannot be read" in err
    del told["launch"]  # a schedule alone
    file.write_text(json.dumps(told))
    args = ["--arg", "src=zeros:f32:32", "--arg", "res=zeros:f32:32", "--arg", "n=1", "--block", 64]
    code, out, _ = command(capsys, "run", path, "--schedule", file, *args)
    assert code == 1 and "deadlock" in out


RACE = ["--block", 64, "--arg", "src=arange:f32:96:start=1", "--arg", "res=zeros:f32:96", "--arg", "n=3"]


def test_all_interleavings_from_the_command(tmp_path, capsys):
    path = example("slot_index_after_step_faulty")
    code, out, _ = command(capsys, "run", path, *RACE, "--explore", tmp_path, "--expect", "res[32:] == src[32:]")
    assert code == 1 and "finished with results 1 (1 of 2 runs)\nall interleavings seen\n" in out
    assert out.count("--schedule ") == 2 and out.count("FAILED") == 2
    code, out, _ = command(capsys, "run", path, "--schedule", tmp_path / "kernel-1-finished.json")
    assert code == 1 and "elements are not those of --schedule round-robin" in out


def test_one_interleaving_is_enough_where_all_is_ordered(tmp_path, capsys):
    path = example("slot_index_after_step_clean")
    code, out, _ = command(capsys, "run", path, *RACE, "--explore", tmp_path, "--expect", "res == src")
    assert code == 0 and "(1 of 1 runs)\nall interleavings seen\n" in out and "ok  res == src" in out


def test_options_of_one_run_are_refused(tmp_path, capsys):
    path = example("slot_index_after_step_clean")
    code, _, err = command(capsys, "run", path, *RACE, "--explore", tmp_path, "--races")
    assert code == 1 and "error[E1030]: --explore runs many interleavings, --races concerns one" in err
