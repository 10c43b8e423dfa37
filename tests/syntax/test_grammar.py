"""The grammar itself, and its saved tables."""

import subprocess
import sys

import pytest

from ptxdsl.resources import grammar_text
from ptxdsl.source import Source
from ptxdsl.syntax import tables
from ptxdsl.syntax.build import Builder
from ptxdsl.syntax.parse import tree_text


def test_no_conflicts():
    pytest.importorskip("interegular")
    tables.compile_grammar(grammar_text(), strict=True)


def test_every_rule_has_its_builder_method():
    names = {rule.alias or str(rule.origin.name) for rule in tables.load_lark().rules}
    missing = {name for name in names if not name.startswith("_") and not hasattr(Builder, name)}
    # Rules of one child that pass it on.
    assert missing <= {
        "statement", "simple", "assignment", "expressions", "expression", "or_test", "and_test", "not_test",
        "comparison", "bit_or", "bit_xor", "bit_and", "shift", "sum", "product", "factor", "power", "postfix",
        "atom", "name",
    }  # fmt: skip


def test_saved_tables():
    grammar = 'module: "a" NAME\nNAME: /[b-z]+/\nRESERVED: "x!"\nFOREIGN: "y!"\n%ignore " "\n'
    data = tables.build_tables(grammar)
    lark = tables.load_tables(data, grammar)
    assert lark is not None and lark.parse("a b").data == "module"
    assert tables.load_tables(data, grammar + "\n") is None
    assert tables.load_tables(data.replace(b"ptxdsl-tables-", b"ptxdsl-tables+", 1), grammar) is None
    assert tables.load_tables(b"", grammar) is None


def test_tree_text():
    assert tree_text(Source("test.pdsl", "if a: pass\n")).split() == (
        ["module", "if_statement", "if", "name_expression", "a", ":", "line_block", "line", "pass_statement", "pass"]
    )


def test_importing_the_parser_does_not_import_lark():
    code = "import sys, ptxdsl.syntax.parse; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
