"""Arbitrary text: a tree with right spans, or diagnostics that lie in the text; never anything else."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_files import KERNEL_FILES
from span_rules import check_spans

from ptxdsl.diagnostics import CompileError
from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse

KERNELS = [path.read_text(encoding="utf-8") for path in KERNEL_FILES]
PIECE = re.compile(r"\s+|\w+|[^\w\s]")
WORDS = sorted({word for kernel in KERNELS for word in PIECE.findall(kernel)})
STRANGE = PIECE.findall("fn let alias trait class lambda try except with async assert match {}`!?é'\\ \x00 \t")
STRANGE += [":=", "0x", "1__2", "1.e", '"', '"""', "'''"]
LINES = ["\n", "\n    ", "\n        ", "\n\t", "\n  "]

pieces = st.sampled_from(WORDS) | st.sampled_from(STRANGE) | st.sampled_from(LINES) | st.sampled_from("()[]:,=^.@;")
few = settings(max_examples=150, deadline=2000)


def check(text: str) -> None:
    try:
        tree = parse(Source("test.pdsl", text))
    except CompileError as failure:
        assert 1 <= len(failure.diagnostics) <= 50
        for problem in failure.diagnostics:
            for span in (problem.span, *(span for span, _ in problem.notes)):
                assert span is not None and 0 <= span.start <= span.end <= len(text)
            assert problem.code.startswith("E01") and problem.message
    else:
        check_spans(tree)


@few
@given(st.text(max_size=200))
def test_text(text):
    check(text)


@few
@given(st.lists(pieces, max_size=60).map(" ".join))
def test_token_soup(text):
    check(text)


@few
@given(st.data())
def test_mutated_kernel(data):
    words = PIECE.findall(data.draw(st.sampled_from(KERNELS)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(pieces, max_size=2))
    check("".join(words))
