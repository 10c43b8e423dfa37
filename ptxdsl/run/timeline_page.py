"""``--timeline``: a simulated run as one self-contained HTML page, with nothing loaded from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptxdsl.run.chrome_trace import place
from ptxdsl.run.lanes import Lane
from ptxdsl.source import Span

# Bars; a page with more is slow to open, so the latest are left out, and the page says so.
MOST_BARS = 200_000


def timeline_page(lanes: Sequence[Lane], line_map: Sequence[Span | None], title: str, cut: int = 0) -> str:
    """cut: events that the run had beyond those recorded."""
    lines: dict[int, dict[str, str]] = {}
    rows: list[dict[str, Any]] = []
    starts = sorted(bar.start for lane in lanes for bar in lane.bars)
    end = starts[MOST_BARS] if len(starts) > MOST_BARS else float("inf")
    for lane in lanes:
        kept = [bar for bar in lane.bars if bar.start < end]
        cut += len(lane.bars) - len(kept)
        for bar in kept:
            if bar.line and bar.line not in lines:
                lines[bar.line] = _source(bar.line, line_map)
        bars = [[bar.start, bar.end - bar.start, bar.state, bar.label, bar.line] for bar in kept]
        rows.append({"name": lane.name, "kind": lane.kind, "bars": bars})
    data = json.dumps({"lanes": rows, "lines": lines, "cut": cut}, separators=(",", ":")).replace("<", "\\u003c")
    page = (Path(__file__).parent / "timeline.html").read_text(encoding="utf-8")
    return page.replace("{{title}}", html.escape(title)).replace("{{data}}", data)


def _source(line: int, line_map: Sequence[Span | None]) -> dict[str, str]:
    span = line_map[line - 1] if 0 < line <= len(line_map) else None
    text = span.source.text.split("\n")[span.line - 1].strip() if span is not None else ""
    return {"place": place(line, line_map) or f"PTX line {line}", "text": text}
