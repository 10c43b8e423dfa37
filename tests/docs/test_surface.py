"""Everything that `import ptxdsl` gives is in the documents, and has words of its own for `help()`."""

from __future__ import annotations

import inspect
import pydoc
import re

import pytest
from blocks import ROOT

import ptxdsl

TEXT = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("python_api.md", "simulator.md"))
# Attributes that have no part in the documents: between the parts of the package.
INTERNAL = {
    "CompileError": {"noted"},
    "Kernel": {"adopt", "compiled_before", "load", "module", "spans"},
    "Limits": {"check", "check_memory"},
    "TensorMap": {"array", "data", "encode", "on"},
}
NAMES = sorted(set(ptxdsl.__all__) - {"__version__"})


def attributes(kind: type) -> set[str]:
    own = (base for base in kind.__mro__ if base.__module__.startswith("ptxdsl"))
    return {name for base in own for name in vars(base) if not name.startswith("_")}


def is_documented(name: str) -> bool:
    """In code, as a word (``ptxdsl.load(path)``, ``report.events``); a class by its name in the text."""
    texts = [TEXT] if name[0].isupper() else re.findall(r"```.*?```|`[^`\n]+`", TEXT, re.DOTALL)
    return any(re.search(rf"\b{name}\b", text) for text in texts)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented(name: str) -> None:
    assert is_documented(name)
    value = getattr(ptxdsl, name)
    if inspect.isclass(value):
        missing = {n for n in attributes(value) - INTERNAL.get(name, set()) if not is_documented(n)}
        assert missing == set()


@pytest.mark.parametrize("name", [*NAMES, "torch"])
def test_help_reads_well(name: str) -> None:
    """A docstring at everything public, and nothing of the machinery in a signature."""
    value = getattr(ptxdsl, name)
    assert inspect.getdoc(value)
    page = pydoc.plain(pydoc.render_doc(value))
    assert " object at 0x" not in page
    if inspect.isclass(value):
        for attribute in attributes(value):
            member = inspect.getattr_static(value, attribute)
            if callable(member) or isinstance(member, property):
                assert inspect.getdoc(member), attribute


def test_the_first_page_names_what_there_is() -> None:
    page = pydoc.plain(pydoc.render_doc(ptxdsl)).partition("PACKAGE CONTENTS")[0]
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", page)] == []
