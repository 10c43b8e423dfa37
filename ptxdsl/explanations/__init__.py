"""What each diagnostic's code means: one Markdown file for each family of codes, a section for each code.

A section's heading is the code and a title; the rule in plain words follows.
"""

from __future__ import annotations

import re
from pathlib import Path

from ptxdsl.hints import Any

_SECTION = re.compile(r"^## ([EW]\d{4}) (.+\n\n(?:.|\n)+?)\n*(?=^## |\Z)", re.MULTILINE)


def _read() -> dict[str, str]:
    folder: Any = Path(__file__).parent
    if not folder.is_dir():  # an archive
        from importlib.resources import files  # with the typing module: 4 ms

        folder = files(__name__)
    families = sorted((f for f in folder.iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return {m[1]: m[2] + "\n" for file in families for m in _SECTION.finditer(file.read_text(encoding="utf-8"))}


# Code -> explanation: a title, a blank line, the rule.
EXPLANATIONS: dict[str, str] = _read()
