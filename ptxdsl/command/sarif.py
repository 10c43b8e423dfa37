"""Findings in SARIF 2.1.0, the form in which code hosts show them at their lines.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ptxdsl.command.json_diagnostics import trip_as_json
from ptxdsl.diagnostics import Diagnostic
from ptxdsl.source import Span
from ptxdsl.version import __version__

_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(diagnostics: Sequence[Diagnostic]) -> str:
    """One run with all diagnostics that have a place."""
    from ptxdsl.explanations import EXPLANATIONS

    rules = []
    for code in dict.fromkeys(d.code for d in diagnostics):
        title = EXPLANATIONS.get(code, code).strip().partition("\n")[0]
        rules.append({"id": code, "shortDescription": {"text": title}})
    driver = {"name": "ptxdsl", "version": __version__, "rules": rules}
    results = [_result(d) for d in diagnostics if d.span is not None]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    assert diagnostic.span is not None
    text = diagnostic.message if diagnostic.help is None else f"{diagnostic.message}\n{diagnostic.help}"
    result = {
        "ruleId": diagnostic.code,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
        "locations": [_location(diagnostic.span, diagnostic.trips_at(diagnostic.span) or None)],
        "relatedLocations": [_location(span, _note(diagnostic, span, label)) for span, label in diagnostic.notes],
    }
    if diagnostic.trips:
        result["properties"] = {"trips": [trip_as_json(trip, _location) for trip in diagnostic.trips]}
    return result


def _note(diagnostic: Diagnostic, span: Span, label: str) -> str:
    trips = diagnostic.trips_at(span)
    return f"{label}: {trips}" if trips else label


def _location(span: Span, label: str | None = None) -> dict[str, Any]:
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    region = {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
    place: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": quote(os.fsencode(span.source.name))}, "region": region}
    }
    if label is not None:
        place["message"] = {"text": label}
    return place
