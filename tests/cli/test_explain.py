"""Every diagnostic code has an explanation, and every explanation a code."""

import re
from pathlib import Path

import pytest

import ptxdsl
from ptxdsl.command.explain import explain
from ptxdsl.diagnostics import CompileError
from ptxdsl.explanations import EXPLANATIONS

CODE = re.compile(r"\"([EW]\d{4})\"")


def codes_in_use() -> set[str]:
    package = Path(ptxdsl.__file__).parent
    texts = (p.read_text(encoding="utf-8") for p in package.rglob("*.py"))
    return {code for text in texts for code in CODE.findall(text)}


def test_every_code_is_explained_and_every_explanation_is_of_a_code() -> None:
    used = codes_in_use()
    assert sorted(used - EXPLANATIONS.keys()) == []
    assert sorted(EXPLANATIONS.keys() - used) == []


@pytest.mark.parametrize("code", sorted(EXPLANATIONS))
def test_explanations_have_a_title_and_a_text(code: str) -> None:
    title, blank, *rest = explain(code).split("\n")
    assert title.startswith(f"{code}: ") and len(title) > 10 and not title.endswith(".")
    assert blank == "" and len(" ".join(rest)) > 20
    assert all(len(line) <= 120 for line in rest)


def test_any_case() -> None:
    assert explain(" e0001 ") == explain("E0001")


@pytest.mark.parametrize(("code", "hint"), [("E0002", "the codes of this group are E0001"), ("x", "looks like E0301")])
def test_unknown_codes(code: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        explain(code)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "E1008" and hint in (diagnostic.help or "")


FILES = sorted((Path(ptxdsl.__file__).parent / "explanations").glob("*.md"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_has_the_codes_of_its_family_errors_first_each_once(file: Path) -> None:
    headings = re.findall(r"^## (.*)", file.read_text(encoding="utf-8"), re.MULTILINE)
    codes = [heading.split()[0] for heading in headings]
    assert codes == sorted(set(codes)) and {code[1:3] for code in codes} == {file.stem[:2]}
    assert EXPLANATIONS.keys() >= set(codes)
