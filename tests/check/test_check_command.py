"""``ptxdsl check`` as a user meets it: PTX, allowed findings, JSON, SARIF, what is missing for a verdict."""

import json
import re

import pytest
from pipeline_kernels import copies, ring

from ptxdsl.cli import main

CLEAN = ring()
FAULTY = ring(count="32 if i < 2 else 64")
LINE = "            bars[unsafe_offset=i].init(Int32(32 if i < 2 else 64))\n"
CODE = "E1202"  # of FAULTY: 32 arrive


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Runs the command on a text: its exit code, what it says on both streams."""
    monkeypatch.chdir(tmp_path)

    def run(text, *options, name="kernel.pdsl"):
        (tmp_path / name).write_text(text)
        capsys.readouterr()
        code = main(["check", name, *options])
        return (code, *capsys.readouterr())

    return run


def ptx_of(tmp_path, text, *options):
    (tmp_path / "source.pdsl").write_text(text)
    assert main(["compile", "source.pdsl", "--check=off", "-o", "kernel.ptx", *options]) == 0
    return (tmp_path / "kernel.ptx").read_text()


def test_verdicts_and_exit_codes(check):
    assert check(CLEAN) == (0, "kernel 'kernel': proved\n", "")
    code, out, err = check(FAULTY)
    assert (code, out) == (1, "kernel 'kernel': fault\n")
    assert err.startswith(f"error[{CODE}]: wrong arrival count: ") and "kernel.pdsl:7:13" in err


def test_a_block_that_nobody_promises(check):
    text = CLEAN.replace("@kernel(threads=64)", "@kernel")
    said = "proved, for blocks of 64 threads (not in the source: say @kernel(threads=64))"
    assert check(text) == (0, f"kernel 'kernel': {said}\n", "")
    assert check(text, "--block", "64") == (0, "kernel 'kernel': proved\n", "")


NONE_BETWEEN = """
@kernel
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        comptime for i in range(4):
            bars[i].init(Int32({count} if i >= 2 else 32))
    barrier()
    if warp_id() == 0:
        var p = RolePipeline[2, True](bars, bars + 2)
        for i in range(n):
            p.acquire()
            p.commit()
    elif warp_id() == 2:
        res[thread_idx.x] = 3
    {consumer}:
        var c = RolePipeline[2, False](bars, bars + 2)
        for i in range(n):
            c.wait()
            c.release()
"""


@pytest.mark.parametrize(
    ("consumer", "count", "verdict", "reason"),
    [
        ("else", 32, "not provable here", "with 96 threads it is proved, with 128 there is a fault"),
        ("else", 48, "not provable here", "with 128 threads wrong arrival count; with 96 threads wrong arrival count"),
        ("elif warp_id() == 1", 48, "fault", "is initialised for 48 arrivals per phase"),
    ],
)
def test_faults_that_depend_on_a_block_that_is_guessed(check, consumer, count, verdict, reason):
    """What is wrong in blocks of any size is a fault; what is only in some is none."""
    code, out, err = check(NONE_BETWEEN.format(consumer=consumer, count=count))
    assert (code, out.startswith(f"kernel 'kernel': {verdict}")) == (int(verdict == "fault"), True)
    assert reason in err


def test_a_kernel_without_values_of_its_parameters(check):
    text = CLEAN.replace("def kernel(", "def kernel[N: Int](")
    code, out, err = check(text)
    assert (code, out) == (0, "kernel 'kernel': not provable here\n")
    assert "note[W1290]" in err and "needs a value for its parameter `N`" in err and "-D N=" in err
    assert check(text, "-D", "N=3")[1].endswith(": proved\n")


@pytest.fixture
def check_all(tmp_path, capsys, monkeypatch):
    """Runs the command on several texts: its exit code, what it says on both streams."""
    monkeypatch.chdir(tmp_path)

    def run(texts, *options):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        capsys.readouterr()
        code = main(["check", *texts, *options])
        return (code, *capsys.readouterr())

    return run


UNKNOWN = "@kernel\ndef k():\n    var x = nothing\n"
FILES = {"clean.pdsl": CLEAN, "faulty.pdsl": FAULTY, "none.pdsl": "comptime N = 1\n", "wrong.pdsl": UNKNOWN}


def test_several_files_and_their_counts(check_all):
    code, out, err = check_all(FILES)
    assert code == 1
    assert out.splitlines() == [
        "clean.pdsl: kernel 'kernel': proved",
        "faulty.pdsl: kernel 'kernel': fault",
        "clean.pdsl: 1 proved",
        "faulty.pdsl: 1 fault, 1 error",
        "none.pdsl: nothing to prove, no errors",
        "wrong.pdsl: 1 error",
        "4 files: 1 proved, 1 fault, 2 errors; 2 with errors",
    ]
    assert f"error[{CODE}]" in err and "error[E0201]" in err
    code, out, err = check_all({"clean.pdsl": CLEAN, "other.pdsl": CLEAN})
    assert (code, err) == (0, "") and out.endswith("\n2 files: 2 proved; none with errors\n")


def test_a_file_that_cannot_be_read_keeps_none_from_being_checked(check_all, capsys):
    check_all({"clean.pdsl": CLEAN})
    assert main(["check", "missing.pdsl", "clean.pdsl"]) == 1
    out, err = capsys.readouterr()
    assert "error[E1001]" in err and "clean.pdsl: kernel 'kernel': proved\n" in out
    assert "\nmissing.pdsl: 1 error\nclean.pdsl: 1 proved\n" in out


def test_several_files_in_one_document(check_all):
    code, out, err = check_all(FILES, "--json", "--sarif", "-")
    document = json.loads(err)
    assert code == 1
    assert [(v["file"], v["verdict"]) for v in document["verdicts"]] == [
        ("clean.pdsl", "proved"), ("faulty.pdsl", "fault"),
    ]  # fmt: skip
    assert [(d["file"], d["code"]) for d in document["diagnostics"]] == [("faulty.pdsl", CODE), ("wrong.pdsl", "E0201")]
    assert document["files"][1:3] == [
        {"file": "faulty.pdsl", "proved": 0, "faults": 1, "not_provable": 0, "errors": 1, "warnings": 0},
        {"file": "none.pdsl", "proved": 0, "faults": 0, "not_provable": 0, "errors": 0, "warnings": 0},
    ]
    places = [result["locations"][0]["physicalLocation"] for result in json.loads(out)["runs"][0]["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["faulty.pdsl", "wrong.pdsl"]


def test_what_is_in_a_file_that_several_import_is_told_once(check_all):
    using, shared = "from shared import f\n@kernel\ndef k():\n    f()\n", "def f():\n    nothing()\n"
    _, out, err = check_all({"one.pdsl": using, "two.pdsl": using, "shared.pdsl": shared})
    assert err.count("error[E0201]") == 1
    assert out.splitlines()[-1] == "3 files: 3 errors; 3 with errors"


def test_witnesses_are_of_one_file(check_all):
    code, _, err = check_all(FILES, "--witness", "found")
    assert code == 1 and err.startswith("error[E1030]: --witness is for one file")


def test_ptx(check, tmp_path):
    assert check(ptx_of(tmp_path, CLEAN), name="kernel.ptx") == (0, "kernel 'kernel': proved\n", "")
    code, out, err = check(ptx_of(tmp_path, FAULTY), name="kernel.ptx")
    assert (code, out) == (1, "kernel 'kernel': fault\n") and f"error[{CODE}]" in err and "--> kernel.ptx:" in err


def test_ptx_that_says_its_lines(check, tmp_path):
    code, _, err = check(ptx_of(tmp_path, FAULTY, "--lineinfo"), name="kernel.ptx")
    assert code == 1 and "--> source.pdsl:7:" in err and "the PTX instruction" in err


def test_ptx_that_does_not_say_how_much_a_copy_brings(check, tmp_path):
    """Tiles of 8192 and 17408 bytes: where the second ends is known to the tensor map alone."""
    text = """from layout import SharedTile
from tma import tma_load

comptime A = SharedTile[DType.bfloat16, 64, 64]
comptime B = SharedTile[DType.bfloat16, 136, 64]

@kernel(threads=32)
def kernel(a: TensorMap, b: TensorMap, res: Pointer[BFloat16, MutAnyOrigin]):
    var memory = external_memory[UInt8, address_space=.SHARED, alignment=1024]()
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[].init(1)
        fence_mbarrier_init()
        bars[].expect_bytes(Int32(A.bytes + B.bytes))
        tma_load(A(memory), a, bars, [0, 0])
        tma_load(B(memory.unsafe_offset(A.bytes)), b, bars, [0, 0])
    syncwarp()
    bars[].wait(0)
    res[unsafe_offset=thread_idx.x] = memory.bitcast[BFloat16]()[unsafe_offset=thread_idx.x]
"""
    assert check(text)[:2] == (0, "kernel 'kernel': proved\n")
    code, out, err = check(ptx_of(tmp_path, text), name="kernel.ptx")
    assert (code, out) == (0, "kernel 'kernel': not provable here\n") and "how many bytes the tensor copy moves" in err


def test_what_is_no_ptx(check):
    code, out, err = check(".version 8.6\n.target sm_90a\n.address_size 64\nrubbish;\n", name="kernel.ptx")
    assert (code, out) == (1, "") and "kernel.ptx:4:1" in err
    text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
    assert check(text, "--kernel", "other", name="kernel.ptx")[0] == 1


@pytest.mark.parametrize("comment", ["# check: allow E1202: so meant\n", "# check: allow E1201, E1202: so meant\n"])
def test_a_finding_is_allowed(check, comment):
    above, behind = f"            {comment}{LINE}", f"{LINE[:-1]}  {comment}"
    for text in (FAULTY.replace(LINE, above), FAULTY.replace(LINE, behind)):
        assert check(text) == (0, "kernel 'kernel': fault\n", "")


def test_a_finding_is_allowed_without_a_reason_or_for_another(check):
    code, _, err = check(FAULTY.replace(LINE, f"{LINE[:-1]}  # check: allow E1202\n"))
    assert code == 0 and "warning[W1291]" in err and "error" not in err
    code, _, err = check(FAULTY.replace(LINE, f"{LINE[:-1]}  # check: allow E1201: another\n"))
    assert code == 1 and f"error[{CODE}]" in err


def test_json(check):
    document = json.loads(check(FAULTY, "--json")[2])
    assert document["schema"] == 4
    (found,) = document["diagnostics"]
    assert (found["code"], found["severity"], found["start"]) == (CODE, "error", {"line": 7, "column": 13})
    assert document["verdicts"] == [
        {
            "file": "kernel.pdsl", "kernel": "kernel", "verdict": "fault", "kinds": ["wrong arrival count"],
            "block": [64, 1, 1], "cluster": None, "assumed": False, "assumptions": [], "witnesses": [],
        }
    ]  # fmt: skip


# What the schema of SARIF 2.1.0 requires of the objects that are written, by the path to them.
REQUIRED = {
    (): {"version", "runs"},
    ("runs",): {"tool"},
    ("runs", "tool"): {"driver"},
    ("runs", "tool", "driver"): {"name"},
    ("runs", "tool", "driver", "rules"): {"id"},
    ("runs", "results"): {"message"},
    ("runs", "results", "message"): {"text"},
}
LEVELS = {"none", "note", "warning", "error"}


def objects(value, path=()):
    """All objects of a document with the names that lead to them."""
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            yield from objects(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, path)


def test_sarif(check, tmp_path):
    code, out, _ = check(FAULTY, "--sarif", "found.sarif", name="a kernel.pdsl")
    assert (code, out) == (1, "")
    document = json.loads((tmp_path / "found.sarif").read_text())
    found = list(objects(document))
    assert all(any(path == wanted for path, _ in found) for wanted in REQUIRED)
    for path, value in found:
        assert REQUIRED.get(path, set()) <= value.keys()
        if "region" in value:
            assert value["artifactLocation"] == {"uri": "a%20kernel.pdsl"}
            region = value["region"]
            assert 1 <= region["startLine"] <= region["endLine"] and region["startColumn"] >= 1
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    (result,) = run["results"]
    assert result["ruleId"] in {rule["id"] for rule in run["tool"]["driver"]["rules"]} and result["level"] in LEVELS
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert all("message" in place for place in result["relatedLocations"]) and result["relatedLocations"]


LATE = """\
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[32, Float32, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(32)
        bars[unsafe_offset=1].init(32)
    barrier()
    if thread_idx.x < 32:
        var p = RolePipeline[1, True](bars, bars.unsafe_offset(1))
        for i in range(n):
            p.acquire()
            fill(tile, Float32(i))
            p.commit()
    else:
        var c = RolePipeline[1, False](bars, bars.unsafe_offset(1))
        for i in range(n):
            c.wait()
            c.release()
            res[unsafe_offset=i * 32 + Int32(thread_idx.x) - 32] = tile[unsafe_offset=thread_idx.x - 32]

def fill(tile: Pointer[Float32, MutAnyOrigin, address_space=.SHARED], value: Float32):
    tile[unsafe_offset=thread_idx.x] = value
"""


def test_both_sides_are_told_with_their_trips_and_the_calls_that_lead_there(check):
    """The producer's second write meets the consumer's first read."""
    _, _, err = check(LATE)
    (write,) = re.findall(r"tile\[unsafe_offset=thread_idx.x\] = value\n.*\W(warp 0, .*)\n(.*)\n.*\n.*\n(.*)\n", err)
    assert write[0] == "warp 0, in trip 2 of the loop at line 11"
    assert "note: in this call of `fill`" in write[1] and "fill(tile, Float32(i))" in write[2]
    assert "warp 1, in trip 1 of the loop at line 17\n" in err and "it shows with n = 2" in err


def test_trips_as_json_and_as_sarif(check):
    _, out, err = check(LATE, "--json", "--sarif", "-")
    (found,) = json.loads(err)["diagnostics"]
    told = {trip["who"]: (trip["start"]["line"], trip["loops"]) for trip in found["trips"]}
    for who, line, (loop, number) in (("warp 0", 23, (11, 2)), ("warp 1", 20, (17, 1))):
        (inner,) = told[who][1]
        assert (told[who][0], inner["start"]["line"], inner["trip"]) == (line, loop, number)
    ((result,),) = [run["results"] for run in json.loads(out)["runs"]]
    said = {place["message"]["text"] for place in (*result["locations"], *result["relatedLocations"])}
    assert any(text.endswith("warp 0, in trip 2 of the loop at line 11") for text in said)
    assert any(text.endswith("warp 1, in trip 1 of the loop at line 17") for text in said)
    assert [trip["who"] for trip in result["properties"]["trips"]] == [trip["who"] for trip in found["trips"]]


def test_a_finding_outside_of_loops_says_no_trip(check):
    text = """\
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED]()
    tile[unsafe_offset=thread_idx.x] = 1
    res[unsafe_offset=thread_idx.x] = tile[unsafe_offset=63 - thread_idx.x]
"""
    (found,) = json.loads(check(text, "--json")[2])["diagnostics"]
    assert (found["code"], found["trips"]) == ("E1215", [])


def test_sarif_of_a_file_whose_name_is_no_utf8(check):
    _, out, _ = check(FAULTY, "--sarif", "-", name="k\udcff.pdsl")
    (result, *_) = json.loads(out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "k%FF.pdsl"


def test_sarif_of_what_is_proved(check):
    code, out, err = check(CLEAN, "--sarif", "-")
    assert (code, err, json.loads(out)["runs"][0]["results"]) == (0, "", [])


def test_a_compilation_warns_or_refuses(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.pdsl").write_text(copies(announced=144))
    said = {}
    for how in ("warn", "error", "off"):
        capsys.readouterr()
        code = main(["compile", "kernel.pdsl", f"--check={how}", "--no-cache"])
        said[how] = code, capsys.readouterr().err.partition(":")[0]
    assert said == {"warn": (0, "warning[E1204]"), "error": (1, "error[E1204]"), "off": (0, "")}
