"""Lines, indentation, comments and continuation."""

import pytest

from ptxdsl.syntax import ast


def test_blocks_end_where_the_indentation_ends(module):
    outer, last = module("if a:\n  if b:\n      c\n\n  # comment\n      # another\n  d\ne\n").body
    inner, d = outer.then
    assert isinstance(inner, ast.If) and d.value.id == "d" and last.value.id == "e"


def test_tabs_alone_are_an_indentation(module):
    assert len(module("if a:\n\tb\n\tif c:\n\t\td\n").body[0].then) == 2


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n    ", "  # comment", "\n    # comment", "\n# comment\n"])
def test_the_end_of_the_text_closes_all_blocks(module, end):
    assert len(module("if a:\n    if b:\n        c" + end).body) == 1


def test_lines_go_on_inside_brackets(module):
    text = "x = f(\n  a,  # comment\n\n      b\n)\ny = (a\n     if c\n     else b)\n"
    assert len(module(text).body) == 2


def test_lines_go_on_after_a_backslash(module):
    assert len(module("x = a + \\\n    b\nif a and \\\n  b:\n    c\n").body) == 2


def test_comment_lines_do_not_dedent(module):
    assert len(module("def f():\n    a\n# comment\n  # comment\n    b\n").body[0].body) == 2


def test_carriage_returns_before_line_ends(module):
    assert len(module("if a:\r\n    b\r\n\r\n    c\r\nd\r\n").body) == 2


def test_hash_in_a_string_is_no_comment(module):
    assert module('x = "# no comment"').body[0].value.value == "# no comment"
