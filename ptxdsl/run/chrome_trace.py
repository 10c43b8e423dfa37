"""``--trace``: a simulated run as Chrome trace events, for Perfetto or chrome://tracing.

Format: "Trace Event Format" of the Chromium project, JSON object form. A process is a CTA, a thread is a lane; one
microsecond of the viewer is one cycle of the model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ptxdsl.run.lanes import Lane
from ptxdsl.source import Span


def chrome_trace(lanes: Sequence[Lane], line_map: Sequence[Span | None], cut: int = 0) -> str:
    """cut: events that the run had beyond those recorded."""
    events: list[dict[str, Any]] = []
    ctas: dict[str, int] = {}
    for thread, lane in enumerate(lanes, 1):
        cta, _, name = lane.name.partition(".")
        if cta not in ctas:
            ctas[cta] = len(ctas) + 1
            events.append(_metadata("process_name", ctas[cta], 0, cta))
        events.append(_metadata("thread_name", ctas[cta], thread, f"{lane.kind} {name}"))
        for bar in lane.bars:
            events.append(
                {
                    "ph": "X",
                    "name": bar.state if lane.kind != "unit" else bar.label,
                    "cat": lane.kind,
                    "pid": ctas[cta],
                    "tid": thread,
                    "ts": bar.start,
                    "dur": bar.end - bar.start,
                    "args": {"what": bar.label, "ptx line": bar.line, "source": place(bar.line, line_map)},
                }
            )
    trace = {"displayTimeUnit": "ns", "otherData": {"events left out": cut}, "traceEvents": events}
    return json.dumps(trace, separators=(",", ":"))


def place(line: int, line_map: Sequence[Span | None]) -> str:
    """``file:line:column`` of a PTX line, empty where nothing is known."""
    span = line_map[line - 1] if 0 < line <= len(line_map) else None
    return str(span) if span is not None else ""


def _metadata(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
