"""Every diagnostic says what is wrong, and in its help what to write instead."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import ptxdsl

PACKAGE = Path(ptxdsl.__file__).parent
MAKERS = {"Diagnostic", "error", "exhausted", "fail", "problem", "_problem"}

# Their message is all that is known, or says itself what to write.
WITHOUT = {
    "E0110",  # names what is expected
    "E0407",  # the words of the program's author
    "E0805", "E0806", "E0911", "E0941", "E0943", "E1024",  # what a tool, a driver or an executor said
    "E1003",  # what the system says of a file
    "E1110", "E1111", "E1112", "E1113",  # what the simulator lacks
    "W0805", "W0940",  # notes
}  # fmt: skip


def silent(path: Path) -> Iterator[str]:
    """The codes of calls that make a diagnostic and say nothing of help."""
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not (isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant)):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        helps = any(k.arg == "help" for k in call.keywords) or (
            name in ("_problem", "exhausted") and len(call.args) > 3
        )
        code = str(call.args[0].value)
        if name in MAKERS and re.fullmatch(r"[EW]\d{4}", code) and not helps:
            yield code


def test_help_is_given() -> None:
    found = {code: path.name for path in PACKAGE.rglob("*.py") for code in silent(path)}
    assert {f"{path}: {code}" for code, path in found.items() if code not in WITHOUT} == set()
    assert WITHOUT - found.keys() == set()
