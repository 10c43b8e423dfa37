"""Texts in Python files: what is said of them is said at the file's own lines."""

import linecache
import textwrap
from pathlib import Path

import pytest

import ptxdsl
from ptxdsl.embedded import source_in

BROKEN = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    p[] = nothing
"""


def first_problem(text, **keywords):
    with pytest.raises(ptxdsl.CompileError) as caught:
        ptxdsl.loads(text, **keywords).k.compile()
    return caught.value.diagnostics[0].span


def line_of(words):
    """Of a line in this file that ends so."""
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(words))


def test_a_mistake_is_shown_in_the_python_file():
    span = first_problem(BROKEN)
    assert (span.source.name, span.line, span.column) == (__file__, line_of("p[] = nothing"), 11)
    assert span.text == "nothing"


def test_a_text_that_was_dedented():
    span = first_problem(
        textwrap.dedent("""
            @kernel
            def k(p: Pointer[Int32, MutAnyOrigin]):

                p[] = something
        """)
    )
    assert (span.source.name, span.line, span.text) == (__file__, line_of("p[] = something"), "something")


def test_a_name_that_is_given_is_taken():
    span = first_problem(BROKEN, name="mine.pdsl")
    assert (span.source.name, span.line) == ("mine.pdsl", 4)


def test_a_text_that_stands_nowhere_has_lines_of_its_own():
    span = first_problem(BROKEN.replace("nothing", "any" + "thing"))
    assert (span.source.name, span.line) == ("<text>", 4)


def test_the_nearest_of_two_places(monkeypatch):
    text = "def k():\n    pass\n"
    lines = [f'A = """{text}"""\n', "\n" * 5, f'B = """\\\n{text}"""\n']
    file = "".join(lines).splitlines(keepends=True)
    monkeypatch.setattr(linecache, "getlines", lambda name: file)
    for line, first in ((1, 1), (2, 1), (8, 10), (99, 10)):
        source = source_in(text, "two.py", line)
        assert (source.name, source.text) == ("two.py", "\n" * (first - 1) + text)


@pytest.mark.parametrize("text", ["", "x", "def k(): pass", "\n\n", "def k():\\n    pass\n"])
def test_what_may_stand_anywhere_stands_nowhere(text):
    assert source_in(text, __file__, 1).name == "<text>"


def test_a_file_that_cannot_be_read():
    assert source_in("def k():\n    pass\n", "<string>", 1).name == "<text>"


def test_the_place_of_a_text_is_not_in_its_code():
    """But for the header's name of the file."""
    text = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    p[] = 5
"""
    placed, named = ptxdsl.loads(text).k.compile(), ptxdsl.loads(text, name="k.pdsl").k.compile()
    assert placed.ptx.replace("from test_embedded.py", "from k.pdsl") == named.ptx
