"""The grammar itself, and its saved tables."""

import subprocess
import sys
from contextlib import suppress
from functools import cache
from itertools import takewhile
from random import Random

import pytest
from kernel_files import KERNEL_FILES
from lark import Lark, Tree, UnexpectedCharacters
from lark import Token as LarkToken
from lark.lexer import LexerThread

from ptxdsl.files.resources import grammar_text
from ptxdsl.source import Source
from ptxdsl.syntax import tables
from ptxdsl.syntax.build import Builder
from ptxdsl.syntax.lalr import Actions, Machine
from ptxdsl.syntax.layout import lay_out
from ptxdsl.syntax.parse import read_source, tree_text
from ptxdsl.syntax.scan import scan

SOURCE = Source("test.pdsl", "if a: pass\n")


@cache
def lark_parser() -> Lark:
    return tables.compile_grammar(grammar_text())


def without_layout(tree: Tree) -> Tree:
    for part in tree.iter_subtrees():
        layout = ("NEWLINE", "INDENT", "DEDENT")
        part.children = [c for c in part.children if c is not None and getattr(c, "type", "") not in layout]
    return tree


def test_no_conflicts():
    pytest.importorskip("interegular")
    tables.compile_grammar(grammar_text(), strict=True)


def test_every_rule_has_its_builder_method():
    names = {rule.callback for rule in tables.current_tables().rules if not rule.inlined}
    missing = {name for name in names if not hasattr(Builder, name)}
    # Rules of one child that pass it on.
    assert missing <= {
        "statement", "simple", "assignment", "expressions", "expression", "or_test", "and_test", "not_test",
        "comparison", "bit_or", "bit_xor", "bit_and", "shift", "sum", "product", "factor", "power", "postfix",
        "atom", "name",
    }  # fmt: skip


@pytest.mark.parametrize("path", KERNEL_FILES, ids=lambda path: path.name)
def test_tokens_are_those_of_lark(path):
    text = path.read_text(encoding="utf-8")
    tokens = [(t.type, str(t)) for t in scan(tables.current_tables(), Source("a", text), [])]
    assert tokens == [(t.type, str(t)) for t in lark_parser().lex(text)]


def test_tokens_of_anything_are_those_of_lark():
    """Numbers, strings and line ends in every neighbourhood; up to the first character that begins no token."""
    loaded, seen = tables.current_tables(), set()
    words = "0 1 12 0x 0b 0o7 1f _ 1_0 0_0 00 .5 1. e E5 e-3 0xfG r R a x1 é ! $ if try"
    strings = ["'", '"', "''", '"""', 'r"', "\\", '\\"', '"a"']
    blanks = ["\n", "\r\n", "\r", "\n   ", "\t", " ", "#x", "\\\n", "\\\r\n"]
    pieces = [*loaded.signs, *words.split(), *strings, *blanks]
    chosen, lexer = Random(1), lark_parser().parser.lexer.lexer
    for _ in range(4000):
        text = "".join(chosen.choices(pieces, k=chosen.randint(1, 8)))
        tokens = scan(loaded, Source("a", text), [])
        theirs = []
        with suppress(UnexpectedCharacters):
            theirs.extend((t.type, str(t), t.start_pos) for t in LexerThread.from_text(lexer, text).lex(None))
        good = list(takewhile(lambda token: token.type != "ERROR", tokens))
        assert [(t.type, str(t), t.start) for t in good] == theirs, text
        seen.update(t.type for t in good)
    assert {"INTEGER", "FLOAT", "STRING", "NEWLINE", "RESERVED", "AUGMENTED", "FOREIGN"} <= seen


def test_every_sign_is_a_token():
    known = tables.current_tables().signs
    tokens = scan(tables.current_tables(), Source("a", " ".join(known)), [])
    assert [(str(t), t.type) for t in tokens] == list(known.items())
    # the longest counts
    tokens = scan(tables.current_tables(), Source("a", "a**b->.5...//=x<<=y<<z<=:=1."), [])
    assert " ".join(tokens) == "a ** b -> .5 ... //= x <<= y << z <= := 1."
    assert [t.end for t in scan(tables.current_tables(), Source("a", "a +"), [])] == [1, 3]


def test_saved_tables():
    data = tables.build_tables(grammar_text())
    loaded = tables.load_tables(data, grammar_text())
    assert loaded is not None
    machine = Machine(Actions(loaded, lambda name: lambda children: name))
    tokens = lay_out(SOURCE, scan(loaded, SOURCE, []), []).tokens
    assert machine.run(tokens, 0) == len(tokens) and machine.values == ["module"]
    assert tables.load_tables(data, grammar_text() + "\n") is None
    assert tables.load_tables(data.replace(b"ptxdsl-tables-", b"ptxdsl-tables+", 1), grammar_text()) is None
    assert tables.load_tables(b"", grammar_text()) is None


def test_tree_text():
    assert tree_text(SOURCE).split() == (
        ["module", "if_statement", "if", "name_expression", "a", ":", "line_block", "line", "pass_statement", "pass"]
    )


def test_parsing_with_saved_tables_does_not_import_lark(tmp_path):
    (tmp_path / "tables").write_bytes(tables.build_tables(grammar_text()))
    code = (
        "import sys\n"
        "from ptxdsl.source import Source\n"
        "from ptxdsl.syntax.parse import parse\n"
        "from ptxdsl.syntax.tables import offer_tables\n"
        "offer_tables(open(sys.argv[1], 'rb').read())\n"
        "parse(Source('a.pdsl', 'def f(): pass'))\n"
        "sys.exit('lark' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "tables")]).returncode == 0


@pytest.mark.parametrize("path", [p for p in KERNEL_FILES if p.name.startswith("big_")], ids=lambda path: path.name)
def test_our_machine_makes_the_trees_that_lark_makes(path):
    """Lark's own loop over the same laid-out tokens."""
    source = read_source(path)
    lark = lark_parser()
    parser = lark.parse_interactive("")
    for token in lay_out(source, scan(tables.current_tables(), source, []), []).tokens[:-1]:
        parser.feed_token(LarkToken(token.type, str(token)))
    theirs = parser.feed_eof(LarkToken("$END", ""))
    assert str(without_layout(theirs).pretty()) == tree_text(source)
