"""What each diagnostic's code means: one Markdown file for each family of codes, a section for each code.

A section's heading is the code and a title; the rule in plain words follows.
"""

from __future__ import annotations

import re
from importlib.resources import files

_SECTION = re.compile(r"^## ([EW]\d{4}) (.+\n\n(?:.|\n)+?)\n*(?=^## |\Z)", re.MULTILINE)


def _read() -> dict[str, str]:
    families = sorted((f for f in files(__name__).iterdir() if f.name.endswith(".md")), key=lambda f: f.name)
    return {m[1]: m[2] + "\n" for file in families for m in _SECTION.finditer(file.read_text(encoding="utf-8"))}


# Code -> explanation: a title, a blank line, the rule.
EXPLANATIONS: dict[str, str] = _read()
