"""Texts in Python code: what is said of them is said at the code's own lines and columns."""

import linecache
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl

BROKEN = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    p[] = nothing
"""


def problem(call):
    with pytest.raises(ptxdsl.CompileError) as caught:
        call()
    return caught.value.diagnostics[0]


def place(code, word="nothing"):
    """Line and column of a word's last place in a text, from 1."""
    before = code[: code.rindex(word)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


@pytest.fixture
def said_of(tmp_path):
    """said_of(Python code that defines TEXT): where the mistake in TEXT is shown, and the first diagnostic."""

    def run(code, name="use.py"):
        path = tmp_path / name
        path.write_text(code + "\n\nptxdsl.loads(TEXT).k.compile()\n")
        names = {"ptxdsl": ptxdsl, "__name__": "use"}
        found = problem(lambda: exec(compile(path.read_text(), str(path), "exec"), names))
        assert found.span.text == "nothing"
        return found.span.source.name == str(path), (found.span.line, found.span.column), found

    return run


LITERALS = {
    "plain": 'TEXT = """\n@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""',
    "raw": "TEXT = r'''\n@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    # \\d\n    p[] = nothing\n'''",
    "continued": 'TEXT = """\\\n@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing"""',
    "from the quotes on": 'TEXT = """@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""',
    "its first line": 'TEXT = """def k(p: Pointer[nothing, MutAnyOrigin]):\n    p[] = 1\n"""',
    "escapes": 'TEXT = """\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    print("a\\\\n")\n    p[] = nothing\n"""',
    "an f-string without values": 'TEXT = f"""\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""',
    "stripped": 'TEXT = """\n\n\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n\n    p[] = nothing\n\n""".strip()',
    "dedented": 'from textwrap import dedent\nif True:\n    TEXT = dedent("""\n        @kernel\n\n'
    '        def k(p: Pointer[Int32, MutAnyOrigin]):\n            p[] = nothing\n    """)',
    "cleaned": 'from inspect import cleandoc\nTEXT = cleandoc("""@kernel\n    def k(p: Pointer[Int32, MutAnyOrigin]):\n'
    '        p[] = nothing\n    """)',
    "dedented with escapes": 'from textwrap import dedent\nTEXT = dedent("""\n'
    '    def k(p: Pointer[Int32, MutAnyOrigin]):\n        print("\\\\t")\n        p[] = nothing\n""")',
    "of Windows": 'TEXT = """\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""\n'
    'TEXT = TEXT.replace("\\n", "\\r\\n")',
}


@pytest.mark.parametrize("kind", LITERALS)
def test_a_mistake_is_shown_where_the_literal_stands(kind, said_of):
    code = "# a line before\n" + LITERALS[kind]
    in_file, where, found = said_of(code)
    assert in_file and where == place(code)
    line, column = where
    shown = found.render().split("\n")
    assert shown[3].partition("| ")[2] == code.split("\n")[line - 1].rstrip('"')
    assert shown[4].partition("| ")[2] == " " * (column - 1) + "^" * len("nothing")


BUILT = {
    "a value in an f-string": 'TEXT = f"""\ndef k(p: Pointer[{"Int32"}, MutAnyOrigin]):\n    p[] = nothing\n"""',
    "a changed word": 'TEXT = """\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = no\n""".replace("no", "nothing")',
    "two literals": 'TEXT = "\\ndef k(p: Pointer[Int32, MutAnyOrigin]):\\n" "    p[] = nothing\\n"',
}


@pytest.mark.parametrize("kind", BUILT)
def test_a_text_that_was_built_has_lines_of_its_own(kind, said_of):
    in_file, where, found = said_of(BUILT[kind])
    assert not in_file and found.span.source.name == "<text>"
    assert where == (3, 11)


def test_the_nearest_of_two_places(said_of):
    literal = 'TEXT = """\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""\n'
    assert said_of(literal + "\n" * 20 + literal)[1] == (27, 11)
    later = literal + "\ntry:\n    ptxdsl.loads(TEXT).k.compile()\nfinally:\n    pass\n" + "\n" * 20 + literal
    assert said_of(later, "later.py")[1] == (3, 11)


def test_a_name_that_is_given_is_taken():
    span = problem(lambda: ptxdsl.loads(BROKEN, name="mine.pdsl").k.compile()).span
    assert (span.source.name, span.line, span.column) == ("mine.pdsl", 4, 11)


@pytest.mark.parametrize("text", ["", "x", "def k(): pass", "\n\n", "\n" * 20, "def k():\\n    pass\n"])
def test_what_may_stand_anywhere_stands_nowhere(text):
    assert ptxdsl.loads(text)._program.source.name == "<text>"


def test_code_that_cannot_be_read():
    names = {"ptxdsl": ptxdsl, "BROKEN": BROKEN}
    span = problem(lambda: exec("ptxdsl.loads(BROKEN).k.compile()", names)).span
    assert (span.source.name, span.line) == ("<text>", 4)


def test_other_code_than_files(monkeypatch):
    """Whatever linecache knows: doctests, cells."""
    code = f'TEXT = """{BROKEN}"""\nptxdsl.loads(TEXT).k.compile()\n'
    monkeypatch.setitem(linecache.cache, "<cell 7>", (len(code), None, code.splitlines(True), "<cell 7>"))
    span = problem(lambda: exec(compile(code, "<cell 7>", "exec"), {"ptxdsl": ptxdsl})).span
    assert (span.source.name, span.line, span.column) == ("<cell 7>", 4, 11)


def python(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(Path(ptxdsl.__file__).parents[1])}
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options).stderr


def test_python_c():
    code = f'import ptxdsl\nptxdsl.loads("""{BROKEN}""").k.compile()\n'
    assert " --> <string>:5:11\n" in python("-W", "error", "-c", code, "argument")


def test_the_prompt():
    """Python 3.11 keeps no code that was typed."""
    code = f'import ptxdsl\nk = ptxdsl.loads("""{BROKEN}""").k\n\nk.compile()\n'
    assert " --> <text>:4:11\n" in python("-i", input=code)


def test_the_place_of_a_text_is_not_in_its_code():
    """But for the header's name of the file."""
    text = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    p[] = 5
"""
    placed, named = ptxdsl.loads(text).k.compile(), ptxdsl.loads(text, name="k.pdsl").k.compile()
    assert placed.ptx.replace("from test_embedded.py", "from k.pdsl") == named.ptx


def test_lines_and_columns_are_kept_where_a_kernel_goes(said_of, tmp_path, monkeypatch):
    """Through the cache, to another process, and in the PTX's own lines."""
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("PTXDSL_NO_CACHE", raising=False)
    places = []
    for indent in ("", "    ", "    "):
        body = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 5\n"
        lines = "".join(indent + line for line in body.splitlines(True))
        code = f'from textwrap import dedent\nk = ptxdsl.loads(dedent("""\n{lines}"""), lineinfo=True).k\n'
        (tmp_path / "use.py").write_text(code)
        linecache.checkcache()
        names = {"ptxdsl": ptxdsl}
        exec(compile(code, str(tmp_path / "use.py"), "exec"), names)
        compiled = names["k"].compile()
        column = 5 + len(indent)
        assert f"\t.loc\t1 5 {column}\n" in compiled.ptx
        places.append({str(span).rpartition("use.py")[2] for span in compiled.line_map if span is not None})
        assert f":5:{column}" in places[-1]
    assert places[1] == places[2] != places[0]
