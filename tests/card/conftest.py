"""The modules beside the tests are imported by their names, as ``record.py`` imports them on the card."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
