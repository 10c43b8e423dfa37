"""The helpers beside the tests are imported by their names."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from command_programs import GOOD


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.pdsl"
    path.write_text(GOOD)
    return str(path)
