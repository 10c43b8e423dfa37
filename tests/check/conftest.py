"""The helpers beside the tests, and those of the simulator's tests, are imported by their names."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE.parent / "card", HERE.parent / "sim", HERE):
    sys.path.insert(0, str(folder))
