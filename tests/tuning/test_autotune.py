"""``autotune`` in the simulator: which configurations there are, what becomes of each, and what is known afterwards."""

import errno
import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ptxdsl
from ptxdsl.run import progress

TEXT = """
@kernel
def fill[width: Int = 1, wrong: Int = 0](res: Pointer[Float32, MutAnyOrigin], n: Int32):
    comptime assert wrong != 2, "wrong is 2"
    var first = (Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)) * Int32(width)
    comptime for j in range(width):
        if first + Int32(j) < n:
            res[unsafe_offset=first + Int32(j)] = Float32(first + Int32(j) + Int32(wrong))
    comptime if wrong == 3:
        res[unsafe_offset=1 << 30] = 0
"""
N = 200


@pytest.fixture
def kernel():
    return ptxdsl.loads(TEXT, "fill.pdsl").fill


def arguments(configuration):
    return np.full(N, np.nan, np.float32), N


def grid(configuration):
    return -(-N // (configuration.get("block", 32) * int(configuration.get("width", 1))))


def tune(kernel, space, make=arguments, **more):
    with ThreadPoolExecutor(1) as executor:  # test_executors.py has others
        settings = {"target": "sim", "grid": grid, "block": 32, "executor": executor, **more}
        return ptxdsl.autotune(kernel, space, make, **settings)


def numbers(res, n):
    assert (res == np.arange(n)).all(), f"{(res != np.arange(n)).sum()} elements are wrong"


def test_the_quickest_is_found(kernel):
    """Time in the simulator is its clock, which says how long one configuration takes beside another."""
    tuned = tune(kernel, {"width": [4, 1, 2], "block": [64]}, check=numbers)
    assert [t.configuration for t in tuned.trials] == [{"width": w, "block": 64} for w in (4, 1, 2)]
    for trial in tuned.trials:
        one = kernel.specialize(width=trial.configuration["width"])
        report = one.simulate(*arguments({}), grid=grid(trial.configuration), block=64)
        assert (trial.time, trial.unit, trial.runs) == (report.statistics.cycles, "cycles", 1)
    assert tuned.best is tuned.trials[1] and tuned.best.time == min(t.time for t in tuned.trials)
    assert tuned.kernel is kernel.specialize(width=1) and tuned.shape["grid"] == 4
    times = sorted(t.time for t in tuned.trials)
    assert [line.split("  ") for line in str(tuned).splitlines()] == [
        [f"{time:.0f} cycles", f"width={width}, block=64"] for time, width in zip(times, (1, 2, 4), strict=True)
    ]
    res = np.zeros(N, np.float32)
    tuned.launch(res, N)
    numbers(res, N)


def test_what_is_wrong_with_a_configuration_is_in_its_row(kernel):
    space = [{"wrong": 0}, {"wrong": 1}, {"wrong": 2}, {"wrong": 3}, {"block": 2000}, {"cluster": 3, "grid": 4}]
    tuned = tune(kernel, space, check=numbers)
    assert [t.code for t in tuned.trials] == [None, "E0941", "E0407", "E1120", "E1100", "E1100"]
    assert tuned.trials[1].message == "the result is wrong: 200 elements are wrong"
    assert "wrong is 2" in tuned.trials[2].message
    assert str(tuned).splitlines()[1:3] == [
        "    E0941  wrong=1: the result is wrong: 200 elements are wrong",
        f"    E0407  wrong=2: {tuned.trials[2].message}",
    ]


def test_a_check_may_say_false(kernel):
    tuned = tune(kernel, {"wrong": [1, 0]}, check=lambda res, n: bool(res[0] == 0))
    assert [t.code for t in tuned.trials] == ["E0941", None]


def test_none_runs(kernel):
    with pytest.raises(ptxdsl.LaunchError) as caught:
        tune(kernel, {"wrong": [1, 2]}, check=numbers)
    found = caught.value.diagnostics[0]
    assert found.code == "E0942" and "none of 2 configurations of kernel 'fill' runs (E0407, E0941)" in found.message
    assert found.help == "the first, wrong=1: the result is wrong: 200 elements are wrong"


def test_a_space_is_filtered(kernel):
    tuned = tune(kernel, {"width": [1, 2, 4], "block": [32, 64]}, keep=lambda c: c["width"] * c["block"] == 128)
    assert [t.configuration for t in tuned.trials] == [{"width": 2, "block": 64}, {"width": 4, "block": 32}]


def test_equal_configurations_run_once(kernel):
    calls = []
    tuned = tune(kernel, [{"width": 1}, {}, {"width": "1"}], check=lambda *given: calls.append(given))
    assert len(tuned.trials) == 3 and len({t.time for t in tuned.trials}) == 1
    assert len(calls) == 2  # `width` left out is another kernel as far as anybody knows before it is compiled


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"widht": [1]}, "'widht' is neither a comptime parameter of kernel 'fill' nor a part of a launch"),
        ({"width": 3}, "the values of 'width' are 3"),
        ({"width": "12"}, "the values of 'width' are '12'"),
        ({"width": []}, "there is no configuration in the space"),
        ([{"width": 1}, 3], "the space is neither a mapping"),
        (7, "the space is neither a mapping"),
    ],
)
def test_spaces_that_are_none(kernel, space, words):
    with pytest.raises(ptxdsl.LaunchError) as caught:
        tune(kernel, space)
    (found,) = caught.value.diagnostics
    assert found.code == "E0940" and found.message.startswith(words)
    if space == {"widht": [1]}:
        assert found.help == "did you mean 'width'?"


def test_what_is_tuned_and_how_long_is_looked_at_first(kernel):
    for wrong in ({"arguments": 3}, {"check": 3}, {"executor": 3}):
        with pytest.raises(TypeError, match=rf"^{next(iter(wrong))} .* not int$"):
            ptxdsl.autotune(kernel, {"width": [1]}, **{"arguments": (), **wrong})
    with pytest.raises(TypeError, match="a kernel is tuned, not Module"):
        tune(kernel.module, {})
    with pytest.raises(ptxdsl.LaunchError, match="E0915"):
        tune(kernel, {}, timeout=0)


def test_nothing_kept(kernel):
    with pytest.raises(ptxdsl.LaunchError, match="no configuration that `keep` keeps"):
        tune(kernel, {"width": [1]}, keep=lambda c: False)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_that_goes_away_ends_no_run(kernel, monkeypatch):
    class Gone(Terminal):
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0)
    monkeypatch.setattr(sys, "stderr", Gone())
    assert tune(kernel, {"width": [1]}).best.time is not None


def test_progress_on_a_terminal_only(kernel, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0)
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        tune(kernel, {"width": [1, 2]})
    lines = [line for line in terminal.getvalue().split("\r\x1b[K") if line]
    assert lines[-2].startswith("[############------------] measured 1 of 2 configurations, best ")
    assert lines[-1].startswith("[########################] measured 2 of 2 configurations, best ")
    assert terminal.getvalue().endswith("\r\x1b[K")
    tune(kernel, {"width": [1, 2]})
    assert capsys.readouterr() == ("", "")


# ------------------------------------------------------------------------------------------------------------ results


@pytest.fixture
def counted(kernel, tmp_path):
    """``counted(space, …)``: tunes with a results file; the table, and how many configurations were measured."""

    def run(space=None, **more):
        calls = []

        def check(res, n):
            calls.append(n)
            numbers(res, n)

        tuned_one = more.pop("kernel", kernel)
        settings = {"check": check, "results": tmp_path / "results.jsonl", **more}
        tuned = tune(tuned_one, space or {"width": [1, 2, 4], "wrong": [0, 2]}, **settings)
        return tuned, len(calls)

    return run


def test_another_run_measures_nothing_again(counted, tmp_path):
    first, calls = counted()
    assert calls == 3
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["kernel"], row["device"], row["unit"]) for row in rows] == 6 * [("fill", "sim", "cycles")]
    assert sorted(row["code"] or "" for row in rows) == ["", "", "", "E0407", "E0407", "E0407"]
    second, calls = counted()
    assert (calls, second.trials) == (0, first.trials)
    assert (tmp_path / "results.jsonl").read_text().splitlines() == lines


def test_a_run_that_was_ended_goes_on(counted, tmp_path):
    whole, _ = counted()
    path = tmp_path / "results.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"width": 2' not in line))
    again, calls = counted()
    assert (calls, again.trials) == (1, whole.trials)
    more, calls = counted({"width": [1, 2, 4, 8], "wrong": [0]})
    assert calls == 1 and len(more.trials) == 4


@pytest.mark.parametrize("damage", [
    lambda line: line[: len(line) // 2],
    lambda line: line.replace(b'"low"', b'"lwo"'),
    lambda line: b"\xff\x00" + line[2:],
    lambda line: line + line,
    lambda line: b"{}",
    lambda line: b'[1, 2, "sum": "0"}',
])  # fmt: skip
def test_damaged_lines_are_told_and_measured_again(counted, tmp_path, damage):
    whole, _ = counted({"width": [1, 2]})
    path = tmp_path / "results.jsonl"
    first, second = path.read_bytes().splitlines()
    for data in (damage(first) + b"\n" + second + b"\n", second + b"\n" + damage(first)):
        path.write_bytes(data)
        again, calls = counted({"width": [1, 2]})
        assert (calls, again.trials) == (1, whole.trials)
        (told,) = again.warnings
        number = 1 if data.endswith(b"\n") else 2
        assert told.code == "W0940" and told.message.startswith(f"line {number} of '{path}' is damaged")
        assert str(again).endswith(told.render())
        assert counted({"width": [1, 2]})[1] == 0  # what was appended behind the damage is whole


def test_results_are_of_one_text(counted, kernel, tmp_path):
    counted({"width": [1]})
    other = ptxdsl.loads(TEXT.replace("Float32(first", "Float32(0 + first"), "fill.pdsl").fill
    assert counted({"width": [1]}, kernel=other)[1] == 1
    assert counted({"width": [1]}, problem="other sizes")[1] == 1
    assert counted({"width": [1]}, arch="sm_100a")[1] == 1
    assert counted({"width": [1]}, grid=20)[1] == 1
    assert counted({"width": [1]})[1] == 0


@pytest.mark.parametrize(
    ("imports", "call"), [("from deep import three", "three()"), ("from below import deep", "deep.three()")]
)
def test_results_are_of_the_imports_too(tmp_path, imports, call):
    folder = tmp_path / "below" if "below" in imports else tmp_path
    folder.mkdir(exist_ok=True)
    (tmp_path / "k.pdsl").write_text(
        "from one import two\n\n@kernel\ndef k(res: Pointer[Int32, MutAnyOrigin], n: Int32):\n    res[] = two()\n"
    )
    (tmp_path / "one.pdsl").write_text(f"{imports}\n\ndef two() -> Int32:\n    return {call}\n")
    found = []
    for value in (3, 3, 4):
        (folder / "deep.pdsl").write_text(f"def three() -> Int32:\n    return {value}\n")
        tune(
            ptxdsl.load(tmp_path / "k.pdsl").k, [{}], (np.zeros(1, np.int32), 1), block=1, results=tmp_path / "r",
            check=lambda res, n: found.append(int(res[0])),
        )  # fmt: skip
    assert found == [3, 4]


@pytest.mark.parametrize("name", ["", "nowhere/r.jsonl", "a\0b", "/dev/zero"])
def test_results_files_that_cannot_be_used(kernel, tmp_path, name):
    path = str(tmp_path / name)
    with pytest.raises(ptxdsl.LaunchError, match="E0944"):
        tune(kernel, {"width": [1]}, results=path)


def test_a_file_of_something_else_is_left_as_it_is(kernel, tmp_path):
    (tmp_path / "k.pdsl").write_text("@kernel\n")
    with pytest.raises(ptxdsl.LaunchError, match=r"E0944.*k\.pdsl' cannot be written: it has something else in it"):
        tune(kernel, {"width": [1]}, results=tmp_path / "k.pdsl")
    assert (tmp_path / "k.pdsl").read_text() == "@kernel\n"


def test_the_arguments_are_described(kernel, tmp_path):
    results = {"results": tmp_path / "r"}
    res = np.zeros(N, np.float32)
    calls = []
    for given in ((res, N), (res + 1, N), (res, N - 1), (np.zeros(N + 1, np.float32), N)):
        tune(kernel, {"width": [1]}, given, check=lambda *_: calls.append(0), **results)
    assert len(calls) == 3  # the values of an array have no part in it
