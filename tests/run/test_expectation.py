"""--expect: what is compared with what, and what the one line says."""

import numpy as np
import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.run.expectation import Expectation, Tolerance


def judged(text, before, after, relative=0.0, absolute=0.0):
    return Expectation(text).judge(before, after, Tolerance(relative, absolute))


def test_the_left_side_is_after_the_run_and_the_right_one_before():
    outcome = judged("x == x + 1", {"x": np.arange(4)}, {"x": np.arange(4) + 1})
    assert outcome.holds
    assert outcome.text == "x == x + 1: equal (4 elements)"


def test_the_first_difference_is_shown():
    found = np.array([[1.0, 2.0], [3.0, 5.0]])
    outcome = judged("r == w", {"w": np.array([[1.0, 2.0], [3.0, 4.0]])}, {"r": found})
    assert not outcome.holds
    assert outcome.text == (
        "r == w: 1 of 4 elements differ, largest error 1, relative 0.25; the first is [1, 1]: 5.0, expected 4.0"
    )


@pytest.mark.parametrize(("relative", "holds"), [(0.2, False), (0.25, True)])
def test_tolerance_is_numpys(relative, holds):
    assert judged("r == 4", {}, {"r": np.array([4.0, 5.0])}, relative=relative).holds is holds


def test_nan_equals_nan_and_nothing_else():
    nan = float("nan")
    assert judged("r == w", {"w": np.array([nan, 1])}, {"r": np.array([nan, 1])}).holds
    assert not judged("r == w", {"w": np.array([nan, 1])}, {"r": np.array([2.0, 1])}, relative=1e9, absolute=1e9).holds
    assert not judged("r == 1", {}, {"r": np.array([nan])}, relative=1e9, absolute=1e9).holds


def test_large_integers_are_compared_exactly():
    assert not judged("r == w", {"w": np.array([2**62])}, {"r": np.array([2**62 + 1])}).holds
    text = judged("r == w", {"w": np.array([2**64 - 1], np.uint64)}, {"r": np.array([0], np.uint64)}).text
    assert "largest error 1.84e+19" in text


@pytest.mark.parametrize("text", ["r + 1j == r", "r == r + 1j", "r + 1j == r + 2j"])
def test_imaginary_parts_count(text):
    values = {"r": np.array([3.0, 4.0])}
    assert not judged(text, values, values, absolute=0.5).holds
    assert judged(text, values, values, absolute=1).holds


def test_an_expression_that_is_no_comparison_must_be_true():
    assert judged("(r > 0).all()", {}, {"r": np.array([1, 2])}).holds
    assert judged("r.sum() == 3 and True", {}, {"r": np.array([1, 2])}).holds
    assert not judged("r > 1", {}, {"r": np.array([1, 2])}).holds


@pytest.mark.parametrize(("text", "holds"), [("r.sum() == 3", True), ("r[0] == 2", False), ("n == 7", True)])
def test_a_number_is_compared_as_an_array_is(text, holds):
    outcome = judged(text, {}, {"r": np.array([1, 2]), "n": 7})
    assert outcome.holds is holds
    assert outcome.text.startswith(f"{text}: " + ("equal (1 elements)" if holds else "1 of 1 elements differ"))


def test_empty_arrays_are_equal():
    assert judged("r == w", {"w": np.zeros(0)}, {"r": np.zeros(0)}).text == "r == w: equal (0 elements)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("r ==", "invalid syntax"),
        ("q == 1", "NameError: name 'q' is not defined"),
        ("r == np.zeros(3)", "the left side has shape (2,), the right one (3,)"),
        ("r == 'a'", "its sides are not numbers"),
        ("", "invalid syntax"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("(yield)", "SyntaxError: 'yield' outside function"),
        ("exit()", "SystemExit"),
        ("r == math.log(-1)", "ValueError: "),
        ("(" * 1000, "too many nested parentheses"),
    ],
)
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(CompileError) as caught:
        judged(text, {}, {"r": np.array([1, 2])})
    (problem,) = caught.value.diagnostics
    assert problem.code == "E1016"
    assert message in problem.message
