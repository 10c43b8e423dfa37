"""The code blocks of a Markdown file, with what the comments before them say.

A block may have HTML comments on the lines directly before it, invisible to readers:

    <!-- expect: E0504 -->            it must fail, with these codes in this order
    <!-- says -->                     (text) exactly what the compiler says about the failing block before
    <!-- fragment -->                 statements, to stand in the kernel of the file's ``fragment: context`` block
    <!-- fragment: after … above -->  … below the declarations of the ``declarations`` block before
    <!-- declarations -->             no kernel in it: checked as a whole
    <!-- arch: sm_100a -->            the target
    <!-- file: k.pdsl -->             a file of that name beside the samples, for the document's commands and Python
    <!-- exit: 1 -->                  (console) the exit code of its last command
    <!-- in: stdlib/a.pdsl -->        (text) a quotation of that file
    <!-- picture -->                  (text) nothing to run
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"^```(?P<language>.*)$")
_COMMENT = re.compile(r"^<!-- (?P<key>[a-z]+)(?:: (?P<value>.*))? -->$")


@dataclass(frozen=True)
class Block:
    """line: of the opening fence, from 1."""

    path: Path
    line: int
    language: str
    text: str
    marks: dict[str, str]

    @property
    def name(self) -> str:
        return f"{self.path.name}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """All fenced blocks in order. An unclosed fence is an error of the document."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    opened: tuple[int, str] | None = None
    body: list[str] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        fence = _FENCE.match(line)
        if opened is not None and fence:
            found.append(Block(path, *opened, "".join(f"{part}\n" for part in body), marks))
            opened, marks, body = None, {}, []
        elif opened is not None:
            body.append(line)
        elif fence:
            opened = number, fence["language"]
        else:
            comment = _COMMENT.match(line)
            marks = {**marks, comment["key"]: comment["value"] or ""} if comment else {}
    assert opened is None, f"{path.name}: the block at line {opened[0]} is not closed"
    return found


BLOCKS = {path: blocks_of(path) for path in FILES}


def blocks(*languages: str) -> list[Block]:
    return [block for found in BLOCKS.values() for block in found if block.language in languages]


def before(block: Block, mark: str) -> Block:
    """The nearest block above with a mark."""
    above = [b for b in BLOCKS[block.path] if b.line < block.line and mark in b.marks]
    assert above, f"{block.name}: no block marked '{mark}' above it"
    return above[-1]


def said(language: str) -> list[Block]:
    """The blocks that show what is said about a failing block of a language."""
    return [block for block in blocks("text") if "says" in block.marks and before(block, "expect").language == language]
