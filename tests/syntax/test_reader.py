"""Bytes to text."""

import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.syntax.parse import read_source


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        ("# é\n".encode(), "# é\n"),
    ],
)
def test_text(data, text):
    source = read_source(data, "a.pdsl")
    assert (source.name, source.text) == ("a.pdsl", text)


def test_file(tmp_path):
    path = tmp_path / "a.pdsl"
    path.write_bytes(b"x = 1\r\n")
    assert read_source(path).text == "x = 1\n"
    assert read_source(str(path)).name == str(path)


@pytest.mark.parametrize(
    ("data", "byte", "offset", "line", "column"),
    [(b"a\r\nb\xff c", "0xff", 4, 2, 2), (b"\xc3", "0xc3", 0, 1, 1), ("é".encode() + b"\x80", "0x80", 2, 1, 2)],
)
def test_not_utf8(data, byte, offset, line, column):
    with pytest.raises(CompileError) as failure:
        read_source(data, "a.pdsl")
    (problem,) = failure.value.diagnostics
    assert problem.code == "E0101"
    assert problem.message == f"byte {byte} at offset {offset} is not UTF-8 text"
    assert (problem.span.line, problem.span.column) == (line, column)


def test_utf16_is_named():
    with pytest.raises(CompileError) as failure:
        read_source("x = 1".encode("utf-16"))
    assert "UTF-16" in (failure.value.diagnostics[0].help or "")
