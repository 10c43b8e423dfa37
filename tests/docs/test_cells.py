"""A document's cells of a notebook, run in their order in one shell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from blocks import before, blocks, said

DOCUMENTS = sorted({block.path for block in blocks("ipython")})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_cells(path: Path, ipython: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ipython.reset()
    shown = {before(block, "expect").name: block.text for block in said("ipython")}
    for cell in (block for block in blocks("ipython") if block.path == path):
        result = ipython.run_cell(cell.text, store_history=True)
        output = "".join(capsys.readouterr())
        if "expect" not in cell.marks:
            assert (output, result.success) == ("", True), f"{cell.name}:\n{output}"
            continue
        assert [d.code for d in result.error_in_exec.diagnostics] == cell.marks["expect"].split()
        assert output == shown[cell.name]
