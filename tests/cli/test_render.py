"""A diagnostic as the user sees it."""

import time

from ptxdsl.diagnostics import CompileError, Diagnostic, Trip
from ptxdsl.source import CalledSpan, Source, Span


def span_of(text: str, part: str, name: str = "a.pdsl") -> Span:
    start = text.index(part)
    return Span(Source(name, text), start, start + len(part))


def test_message_snippet_note_and_help() -> None:
    text = "def k(n: Int32):\n    var c = n + x\n"
    source = Source("a.pdsl", text)
    use = Span(source, text.index("x"), text.index("x") + 1)
    declared = Span(source, text.index("n:"), text.index(")"))
    found = Diagnostic("E0201", "unknown name 'x'", use, ((declared, "declared here"),), "did you mean 'n'?")
    assert found.render() == (
        "error[E0201]: unknown name 'x'\n"
        " --> a.pdsl:2:17\n"
        "  |\n"
        "2 |     var c = n + x\n"
        "  |                 ^\n"
        "  = note: declared here\n"
        " --> a.pdsl:1:7\n"
        "  |\n"
        "1 | def k(n: Int32):\n"
        "  |       --------\n"
        "  = help: did you mean 'n'?"
    )


def test_without_a_span() -> None:
    found = Diagnostic("E1001", "there is no file 'x'", help="one\ntwo")
    assert found.render() == "error[E1001]: there is no file 'x'\n  = help: one\n          two"


def test_severity_and_colour() -> None:
    found = Diagnostic("W0001", "m", span_of("abc", "b"), severity="warning")
    assert found.render().startswith("warning[W0001]: m")
    painted = found.render(color=True)
    assert "\x1b[1;33mwarning[W0001]\x1b[0m" in painted
    assert "\x1b[1;33m^\x1b[0m" in painted


def caret_line(span: Span) -> tuple[str, str]:
    lines = Diagnostic("E0101", "m", span).render().split("\n")
    return lines[3], lines[4]


def test_tabs_are_expanded() -> None:
    assert caret_line(span_of("\tab\tcd", "cd")) == ("1 |     ab  cd", "  |         ^^")


def test_wide_characters_take_two_columns() -> None:
    assert caret_line(span_of('x = "漢字" + y', "y")) == ('1 | x = "漢字" + y', "  |              ^")
    assert caret_line(span_of("漢字 = 1", "漢字")) == ("1 | 漢字 = 1", "  | ^^^^")


def test_control_characters_do_not_reach_the_terminal() -> None:
    text = Diagnostic("E0102", "bad \x1b[31m", span_of("a \x1b[31m b", "b")).render()
    assert "\x1b" not in text
    assert caret_line(span_of("a \x1b b", "b")) == ("1 | a � b", "  |     ^")


def test_several_lines_show_the_first_and_the_range() -> None:
    lines = Diagnostic("E0101", "m", span_of("if a:\n    b\n    c\n", "a:\n    b\n    c")).render().split("\n")
    assert lines[1:] == [" --> a.pdsl:1:4 to line 3", "  |", "1 | if a:", "  |    ^^"]


def test_end_of_file_and_empty_text() -> None:
    source = Source("a.pdsl", "x =")
    assert caret_line(Span(source, 3, 3)) == ("1 | x =", "  |    ^")
    assert caret_line(Span(Source("a.pdsl", ""), 0, 0)) == ("1 |", "  | ^")


def test_long_lines_are_cut_around_the_span() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    shown, carets = caret_line(span_of(text, "HERE"))
    assert len(shown) <= 130
    assert shown.startswith("1 | …aaa") and shown.endswith("b…")
    column = shown.index("HERE")
    assert carets[column:] == "^^^^" and carets[4:column].isspace()
    whole, carets = caret_line(span_of(text, text))
    assert whole.startswith("1 | aaa") and whole.endswith("…")
    assert carets.count("^") == 120


def test_a_line_of_megabytes_is_cut_before_it_is_measured() -> None:
    start = time.process_time()
    for letter in "a漢":
        texts = (letter * n + "HERE" + letter * n for n in (500, 10**6))
        short, long = (Diagnostic("E0001", "m", span_of(text, "HERE")) for text in texts)
        assert long.render().splitlines()[2:] == short.render().splitlines()[2:]
    assert time.process_time() - start < 0.5


def test_margin_fits_the_largest_line_number() -> None:
    text = "\n" * 99 + "x y"
    source = Source("a.pdsl", text)
    found = Diagnostic("E0101", "m", Span(source, 99, 100), ((Span(source, 0, 0), "first"),))
    assert found.render().split("\n")[1:5] == ["   --> a.pdsl:100:1", "    |", "100 | x y", "    | ^"]


def test_the_repr_names_the_place_and_leaves_out_the_text() -> None:
    text = "def k():\n    var c = nothing\n"
    use = span_of(text, "nothing")
    found = Diagnostic("E0201", "unknown name `nothing`", use, ((use, "here"),), "declare it")
    assert repr(found) == "<error E0201 at a.pdsl:2:13: unknown name `nothing`>"
    assert repr(Diagnostic("W1001", "old", severity="warning")) == "<warning W1001: old>"
    assert "var c" not in repr(CompileError(found)) + repr(use)


def test_what_is_said_of_a_place_is_at_its_marks() -> None:
    text = "    read(tile)\n"
    span, loop = span_of(text, "read(tile)"), span_of("\nfor i in range(n):\n", "for")
    found = Diagnostic("E1211", "stale", span, trips=(Trip("warp 1", span, ((loop, 3),)),))
    assert found.render().endswith("  |     ^^^^^^^^^^ warp 1, in trip 3 of the loop at line 2")
    wide = span_of(f"read({'x' * 110})", "read(" + "x" * 110 + ")")
    found = Diagnostic("E1211", "stale", wide, trips=(Trip("warp 1", wide, ((loop, 3), (loop, 1))),))
    assert found.render().splitlines()[-2:] == [
        "  | " + "^" * 116,
        "  | warp 1, in trip 3 of the loop at line 2, in trip 1 of that at line 2",
    ]


def test_a_loop_of_another_file_is_told_with_the_file() -> None:
    span, loop = span_of("read()", "read()"), span_of("while True:", "while True", "ring.pdsl")
    assert str(Trip("warp 1", span, ((loop, 2),))) == "warp 1, in trip 2 of the loop at ring.pdsl:1"


def test_a_place_in_a_function_is_followed_by_its_calls() -> None:
    source = Source("a.pdsl", "inner\nmiddle\nouter\nother\n")
    inner, middle, outer, other = (source.line_span(number) for number in range(1, 5))
    called = CalledSpan(source, inner.start, inner.end, CalledSpan(source, middle.start, middle.end, outer, "f"), "g")
    found = Diagnostic("E1211", "stale", called, ((other, "written here"), (called, "and here")))
    calls = ((middle, "in this call of `g`"), (outer, "in this call of `f`"))
    assert found.notes == (*calls, (other, "written here"), (called, "and here"))
    assert Diagnostic("E1211", "stale", other, ((called, "read here"),)).notes == ((called, "read here"), *calls)


def test_a_chain_of_calls_is_told_up_to_its_inner_ones() -> None:
    source = Source("a.pdsl", "at\n" * 9)
    span = source.line_span(1)
    for number in range(2, 10):
        span = CalledSpan(source, source.line_span(1).start, 2, span, f"f{number}")
    names = [label for _, label in Diagnostic("E1211", "stale", span).notes]
    assert names == [f"in this call of `f{number}`" for number in (9, 8, 7, 6)]
