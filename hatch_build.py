"""The wheel's build hook: parse tables and the parsed standard library go into it, so that no first run is slow."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedData(BuildHookInterface[Any]):
    """Adds ``ptxdsl/_generated/*`` to a wheel; an editable install makes the same data in the user's cache."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        self.folder = tempfile.TemporaryDirectory()
        for name, entry in self._entries().items():
            path = Path(self.folder.name, name)
            path.write_bytes(entry)
            build_data["force_include"][str(path)] = f"ptxdsl/_generated/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version == "standard":
            self.folder.cleanup()

    def _entries(self) -> dict[str, bytes]:
        os.environ["PTXDSL_CACHE_DIR"] = ""  # nothing from this machine's cache belongs into a wheel
        sys.path.insert(0, self.root)
        try:
            from ptxdsl import imports
            from ptxdsl.files import cache, resources
            from ptxdsl.syntax import tables
        finally:
            sys.path.remove(self.root)
        name, key = imports.tables_entry()
        entries = {name: cache.pack(key, tables.build_tables(resources.grammar_text()))}
        for module in resources.stdlib_names():
            name, key = imports.library_entry(module)
            entries[name] = cache.pack(key, imports.pickled_library_module(module)[1])
        return entries
