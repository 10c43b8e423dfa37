"""The kernel files that every stage is tested on."""

from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
KERNEL_FILES = sorted([*DATA.glob("oracle/*.mojo"), *DATA.glob("examples/*.pdsl")])
