"""The helpers beside the tests are imported by their names."""

import sys
from pathlib import Path

import pytest

from ptxdsl.assemble import find_tool
from ptxdsl.diagnostics import CompileError

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def ptxas() -> str:
    """The assembler's path; tests that need it are skipped where it is not installed."""
    try:
        return find_tool("ptxas")
    except CompileError:
        pytest.skip("ptxas is not installed")
