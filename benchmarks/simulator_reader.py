"""How fast PTX text is read: megabytes a second of processor time, of our own text and of other compilers'.

    python benchmarks/simulator_reader.py [--runs N] [FILE.ptx …]

The fastest of N runs. Each text is made 1 MB long: what is in it is repeated under new names. Exits 1 where a text is
read slower than 1 MB a second.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

from machine import machine_line, print_table  # noqa: E402

from ptxdsl.artifact import Compiled  # noqa: E402
from ptxdsl.driver import compile_source  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.ptx.reader import read  # noqa: E402
from ptxdsl.source import Source  # noqa: E402

LIMIT = 1.0  # MB/s
SIZE = 1_000_000  # bytes
_HEADER = re.compile(r"^\.(?:version|target|address_size) [^\n]*", re.MULTILINE)


@dataclass(frozen=True)
class Speed:
    name: str
    megabytes: float
    statements: int
    seconds: float

    @property
    def megabytes_a_second(self) -> float:
        return self.megabytes / self.seconds


def texts() -> dict[str, list[str]]:
    """Ours (all samples) and, where it is installed, nvcc's, without and with debug information."""
    ours = []
    for path in sorted((ROOT / "samples").glob("*.pdsl")):
        source = Source(path.name, path.read_text(encoding="utf-8"))
        targets = re.search(r"^# targets: (.*)$", source.text, re.MULTILINE)
        compiled = compile_source(source, options=Options(arch=targets[1].split(", ")[-1] if targets else "sm_90a"))
        assert isinstance(compiled, Compiled)
        ours.append(compiled.ptx)
    found = {"samples": ours}
    if shutil.which("nvcc") is not None:
        file = ROOT / "tests" / "ptx" / "data" / "foreign.cu"
        for arch, option in (("sm_80", "-lineinfo"), ("sm_90a", "-G")):
            command = ["nvcc", "-ptx", "-std=c++17", f"-arch={arch}", option, "-o", "-", str(file)]
            made = subprocess.run(command, check=True, capture_output=True, text=True)
            found[f"nvcc {option}"] = [made.stdout]
    return found


def joined(modules: list[str]) -> str:
    """One module of at least ``SIZE`` bytes: the texts over and over, their names with a number."""
    templates = []
    for text in modules:
        module = read(text)
        names = "|".join(re.escape(name) for name in (*module.functions, *module.variables))
        templates.append((re.compile(rf"(?<![\w$%])(?:{names})(?![\w$])"), _HEADER.sub("", text)))
    parts, size = ["\n".join(_HEADER.findall(modules[0]))], 0
    while size < SIZE:
        for pattern, text in templates:
            parts.append(pattern.sub(rf"\g<0>_{len(parts)}", text))
            size += len(parts[-1])
    return "\n".join(parts)


def reading_speed(name: str, text: str, runs: int) -> Speed:
    """Processor time of the fastest of several runs."""
    best, statements = float("inf"), 0
    for _ in range(runs):
        start = time.process_time()
        module = read(text, name)
        best = min(best, time.process_time() - start)
        statements = sum(len(function.body) for function in module.functions.values())
    return Speed(name, len(text.encode()) / 1e6, statements, best)


def show(speeds: list[Speed]) -> None:
    print_table(
        ["PTX text", "MB", "statements", "ms", "MB/s", "limit"],
        [
            [s.name, f"{s.megabytes:.2f}", str(s.statements), f"{s.seconds * 1e3:.0f}", f"{s.megabytes_a_second:.2f}",
             f"{LIMIT:.1f}"]
            for s in speeds
        ],
    )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("files", nargs="*", type=Path, help="PTX files to read as they are")
    options = parser.parse_args()
    print(machine_line())
    if options.files:
        given = {file.name: file.read_text(encoding="utf-8") for file in options.files}
    else:
        given = {name: joined(modules) for name, modules in texts().items()}
    speeds = [reading_speed(name, text, options.runs) for name, text in given.items()]
    show(speeds)
    return int(any(s.megabytes_a_second < LIMIT for s in speeds))


if __name__ == "__main__":
    sys.exit(main())
