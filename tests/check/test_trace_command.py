"""``ptxdsl run --races`` and ``check_trace`` as a user meets them; every sample's command; the time of a long ring."""

import json
import re
import shlex
import time

import numpy as np
import pytest
from traced import ROOT

import ptxdsl
from ptxdsl.cli import main
from ptxdsl.races.trace import check_trace

SAMPLES = sorted((ROOT / "samples").glob("*.pdsl"))
FAULTY = ROOT / "tests" / "data" / "examples" / "slot_index_after_step_faulty.pdsl"
RING = ROOT / "samples" / "04_kernel_a.pdsl"
ARGUMENTS = ["--arg", "src=arange:f32:320", "--arg", "res=zeros:f32:320", "--arg", "n=10"]


def commands(path):
    """The ``run:`` lines of a sample's head, without the name of the command."""
    head = re.sub(r"\n#  +", " ", path.read_text())
    return [shlex.split(line)[2:] for line in re.findall(r"^# run: (ptxdsl run .*)$", head, re.MULTILINE)]


@pytest.mark.parametrize("option", ["--races", "--lanes"])
@pytest.mark.parametrize("path", [path for path in SAMPLES if commands(path)], ids=lambda path: path.stem)
def test_samples_have_no_races(path, option, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for command in commands(path):
        code = main(["run", *command, "--target", "sim", option])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        assert "races: no race found\n" in captured.out


def test_a_race_fails_the_run_though_it_ends(capsys):
    code = main(["run", str(FAULTY), "--block", "64", *ARGUMENTS, "--races"])
    out, err = capsys.readouterr()
    assert code == 1
    assert "in the simulator (sm_90a): finished" in out and "races: 1 race found" in out
    assert "error[E1211]: stale stage index: warp 0 writes buf[0] in shared memory" in err
    assert main(["run", str(FAULTY), "--block", "64", *ARGUMENTS, "--target", "sim"]) == 0  # without the check


def test_races_as_json(capsys):
    assert main(["run", str(FAULTY), "--block", "64", *ARGUMENTS, "--races", "--json"]) == 1
    document = json.loads(capsys.readouterr().err)
    told = {"kind": "stale stage index", "place": "buf[0]", "stage": 2, "trip": 0}
    told["before"] = {"stage": 0, "trip": 0}
    assert document["run"] == {"good": False, "status": "finished", "races": {"found": [told], "incomplete": []}}
    (race,) = [d for d in document["diagnostics"] if d["severity"] == "error"]
    assert race["code"] == "E1211" and len(race["notes"]) >= 1


def test_a_race_that_is_allowed(tmp_path, capsys):
    """By a comment with a reason, as of what the proof finds."""
    line = "            buf[unsafe_offset=slot + lane] = "
    text = FAULTY.read_text()
    assert text.count(line) == 1
    for reason, code in ((": it is meant so", 0), ("", 0)):
        path = tmp_path / "kernel.pdsl"
        path.write_text(text.replace(line, f"            # check: allow E1211{reason}\n{line}"))
        assert main(["run", str(path), "--block", "64", *ARGUMENTS, "--races"]) == code
        out, err = capsys.readouterr()
        assert "races: no race found" in out and "error[" not in err
        assert ("W1291" in err) == (reason == "")


def test_races_are_the_simulators(capsys):
    assert main(["run", str(RING), *ARGUMENTS, "--races", "--target", "gpu"]) == 1
    assert "E1019" in capsys.readouterr().err


def test_a_kernel_of_the_python_api():
    source, result = np.arange(96, dtype=np.float32), np.zeros(96, np.float32)
    found, report = check_trace(ptxdsl.load(str(FAULTY)).kernel, [source, result, 3], block=64)
    (race,) = found.races
    assert report.finished and race.kind == "stale stage index"
    assert (race.stage, race.place, race.trip) == (2, "buf[0]", 0)
    assert found.diagnostics == (race.diagnostic,) and found.summary() == "races: 1 race found"
    clean, report = check_trace(ptxdsl.load(str(RING)).kernel, [source, result, 3])
    assert report.finished and not clean.races and np.array_equal(result, source)


def test_two_thousand_trips_take_two_seconds():
    source, result = np.ones(64000, np.float32), np.zeros(64000, np.float32)
    kernel = ptxdsl.load(str(RING)).kernel
    check_trace(kernel, [source[:32], result[:32], 1])  # compiles
    start = time.process_time()
    found, report = check_trace(kernel, [source, result, 2000])
    assert report.finished and not found.races
    assert time.process_time() - start <= 2
