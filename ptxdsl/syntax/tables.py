"""The parser's tables: made from the grammar by Lark, kept as plain data, used without Lark.

Lark needs 0.3 s to make the tables, and 60 ms to be imported and to load its own saved form; these load in 1 ms. The
bytes are a header line (format, and which grammar) and numbers and names as ``marshal`` writes them, which every Python
reads and for which, other than for JSON, nothing has to be imported.
"""

from __future__ import annotations

import marshal
from functools import lru_cache

from ptxdsl.files.digest import fingerprint
from ptxdsl.files.resources import grammar_text
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import dataclass, field_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Lark, Token

_FORMAT = "ptxdsl-tables-7"
_MARSHAL = 2  # the version of its format: the last without references, so that equal tables are equal bytes


@dataclass(frozen=True)
class RuleRow:
    """One production. ``callback`` is the rule's alias or name.

    ``passes_single``: with a single child, that child is the value. ``inlined``: the children are the value, and go
    into those of the rule around it. ``arrangement`` (None: children as they are) has for each child how many Nones
    stand before it and whether it is spread; ``trailing`` counts the Nones after the last.
    """

    origin: str
    callback: str
    size: int
    passes_single: bool
    inlined: bool
    arrangement: list[tuple[int, bool]] | None
    trailing: int


@dataclass(frozen=True)
class ParseTables:
    """``words``: the names that are terminals of their own. ``signs``: the other fixed texts; the longest counts.

    ``states``: for each state pairs of a symbol and an action, one after another, marshalled: a parse visits few
    states, and reads those. An action of 0 or more shifts, or goes, to that state; -1 - n reduces by rule n.
    """

    words: dict[str, str]
    signs: dict[str, str]
    symbols: list[str]
    rules: list[RuleRow]
    states: list[bytes]
    start: int
    end: int


class _KeepRefused:
    """Tells Lark to keep the terminals that no rule has: words and signs that are lexed in order to be refused."""

    always_accept = ("RESERVED", "FOREIGN")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return stream


def compile_grammar(grammar: str, *, strict: bool = False) -> Lark:
    """The grammar as a Lark parser (about 0.3 s).

    ``strict`` makes every conflict, of rules and of terminals, a ``lark.GrammarError``; it needs ``interegular``.
    """
    from lark import Lark

    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",
        start="module",
        keep_all_tokens=True,
        postlex=_KeepRefused(),
        strict=strict,
    )


def _header(grammar: str) -> bytes:
    return f"{_FORMAT} {fingerprint(grammar.encode())}\n".encode()


def build_tables(grammar: str) -> bytes:
    """The tables of a grammar as bytes, bound to the grammar's version."""
    return _header(grammar) + marshal.dumps(_extract(compile_grammar(grammar)), _MARSHAL)


def load_tables(data: bytes, grammar: str) -> ParseTables | None:
    """The tables in ``data``, or None if they are of another grammar or format."""
    header = _header(grammar)
    if not data.startswith(header):
        return None
    fields = marshal.loads(data[len(header) :])
    rules = [RuleRow(*row) for row in fields.pop("rules")]
    return ParseTables(rules=rules, **fields)


def _extract(lark: Lark) -> dict[str, Any]:
    from lark.parsers.lalr_analysis import Shift

    fixed = {text: str(t.name) for t in lark.terminals for text in _fixed_texts(t.pattern)}
    table = lark.parser.parser._parse_table
    symbols: dict[str, int] = {}
    rules: dict[Any, int] = {}
    state_numbers = {state: number for number, state in enumerate(table.states)}
    states: list[bytes] = []
    for row in table.states.values():
        flat: list[int] = []
        for symbol, (action, argument) in row.items():
            flat.append(symbols.setdefault(str(symbol), len(symbols)))
            flat.append(state_numbers[argument] if action is Shift else -1 - rules.setdefault(argument, len(rules)))
        states.append(marshal.dumps(flat, _MARSHAL))
    return {
        "words": {text: name for text, name in fixed.items() if text.isidentifier()},
        "signs": {text: name for text, name in fixed.items() if not text.isidentifier()},
        "symbols": list(symbols),
        "rules": [[getattr(row, name) for name in field_names(RuleRow)] for row in map(_rule_row, rules)],
        "states": states,
        "start": state_numbers[table.start_states["module"]],
        "end": state_numbers[table.end_states["module"]],
    }


def _fixed_texts(pattern: Any) -> list[str]:
    """The texts that a terminal stands for: ``"if"``, ``"+=" | "-="``, ``/(let|try)(?!…)/``; of others none."""
    import re

    if pattern.type == "str":
        return [pattern.value]
    listed = re.fullmatch(r"\((?:\?:)?(.*?)\)(?:\(\?!.*\))?", pattern.value, re.S)
    texts = [re.sub(r"\\(.)", r"\1", text) for text in re.split(r"(?<!\\)\|", listed[1])] if listed else []
    return texts if all(re.fullmatch(r"\w+|[^\w\s]+", text) for text in texts) else []


def _rule_row(rule: Any) -> RuleRow:
    nones = [0]  # Lark's empty_indices marks the places where an absent `[...]` leaves a None
    for empty in rule.options.empty_indices or [False] * len(rule.expansion):
        if empty:
            nones[-1] += 1
        else:
            nones.append(0)
    spread = [not symbol.is_term and symbol.name.startswith("_") for symbol in rule.expansion]
    origin = str(rule.origin.name)
    return RuleRow(
        origin=origin,
        callback=str(rule.alias or origin),
        size=len(rule.expansion),
        passes_single=bool(rule.options.expand1) and not rule.alias,
        inlined=origin.startswith("_"),
        arrangement=list(zip(nones, spread, strict=False)) if any(nones) or any(spread) else None,
        trailing=nones[-1],
    )


_offered: bytes | None = None


def offer_tables(data: bytes) -> None:
    """Hands over tables that the driver has kept; they are used if they fit."""
    global _offered
    _offered = data


@lru_cache(maxsize=1)
def current_tables() -> ParseTables:
    """The tables of ``grammar/pdsl.lark``: the offered ones, or new ones."""
    grammar = grammar_text()
    tables = load_tables(_offered, grammar) if _offered is not None else None
    if tables is None:
        tables = load_tables(build_tables(grammar), grammar)
        assert tables is not None
    return tables
