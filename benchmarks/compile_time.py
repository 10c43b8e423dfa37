"""How long a whole process takes from text to PTX, how much memory, and how long a second compile in one process.

    python benchmarks/compile_time.py [--runs N] [--wheel FILE] [--checkout]

A wheel is built and installed into a folder of its own (dependencies come from this interpreter), far from the
checkout. The kernel is kernel A, three stages and two roles. Rows, all whole processes but *recompile* and *edited*:

- *cold*: the user's cache is empty at every run (parse tables and library trees come from the wheel, PTX is made and
  stored).
- *cached*: the cache was filled by a run before, and PTX is made all the same (PTXDSL_NO_CACHE).
- *PTX cache hit*: the command was run before with the same input; its PTX comes from the cache.
- *import*, *python*: ``import ptxdsl``, and an empty program.
- *recompile*: the same text again in one process, to PTX; its syntax tree and the proof of its protocol are remembered,
  its PTX is not.
- *edited*: another text each time, with an array of another size: it is parsed and proved again.

*cached*, *recompile* and *edited* are measured without the checker, too (``--check=off``).

Medians. Limits are compared with wall or processor time, whichever is less: a busy machine stretches the one, and the
other counts twice what runs at once, LLVM and the checker. An idle machine needs no longer than either. Exits 1 where a
figure is beyond its limit. Peers that this interpreter can import compile the same kernel beside it (peers/).
``--checkout`` measures the source tree as it stands instead of a wheel (its parse tables then come from the cache).
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from machine import machine_line, print_table  # noqa: E402

UNCHECKED = ", --check=off"
LIMITS = {"cold": 0.25, "cached": 0.12, "recompile": 0.020, "memory": 130.0}  # seconds; MiB
LIMITS |= {f"{name}{UNCHECKED}": LIMITS[name] for name in ("cached", "recompile")}
COMMAND = "from ptxdsl.cli import command; command()"  # as the console script does
RECOMPILE = """
import json, statistics, sys, time
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.syntax.parse import read_source
times, processor = [], []
for number in range(int(sys.argv[2])):
    start, busy = time.perf_counter(), time.process_time()
    text = open(sys.argv[1], "rb").read()
    if sys.argv[3] == "edited":
        text = text.replace(b"[96, Float32", b"[%d, Float32" % (96 + number))
    compile_source(read_source(text, "kernel_a.pdsl"), options=Options(check=sys.argv[4]))
    times.append(time.perf_counter() - start)
    processor.append(time.process_time() - busy)
print(json.dumps({"median": statistics.median(times[1:]), "processor": statistics.median(processor[1:])}))
"""


@dataclass(frozen=True)
class Run:
    """Wall time, processor time (which a busy machine does not stretch), peak resident memory."""

    seconds: float
    mebibytes: float
    processor: float


def run_process(command: list[str], folder: Path, environment: dict[str, str]) -> Run:
    """Wall time and peak resident memory of one process. Raises RuntimeError with its output where it fails."""
    log = folder / "log"
    with open(log, "wb") as output:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{log.read_text(errors='replace')[-2000:]}")
    return Run(seconds, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def install(wheel: Path | None, folder: Path) -> Path:
    """The wheel unpacked into ``folder/site``, built first where none is given."""
    if wheel is None:
        build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "dist"), str(ROOT)]
        if importlib.util.find_spec("hatchling"):
            build.insert(5, "--no-build-isolation")
        subprocess.run(build, check=True)
        wheel = next((folder / "dist").glob("*.whl"))
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run([*command, "--no-index", "--compile"], check=True)
    return site


def median(runs: list[Run]) -> Run:
    """Median times, greatest memory."""
    wall, processor = statistics.median(r.seconds for r in runs), statistics.median(r.processor for r in runs)
    return Run(wall, max(r.mebibytes for r in runs), processor)


def measure(site: Path, folder: Path, runs: int) -> dict[str, Run]:
    kernel = folder / "kernel_a.pdsl"
    shutil.copy(next((ROOT / "samples").glob("*kernel_a*.pdsl")), kernel)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PTXDSL")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    compile_ = [sys.executable, "-c", COMMAND, "compile", str(kernel), "-o", str(folder / "kernel_a.ptx")]

    def timed(warm: bool, keep_ptx: bool = True, check: str = "warn") -> Run:
        found = []
        for i in range(runs + 1):
            cache = folder / ("cache" if warm else f"cache-{i}")
            own = {"PTXDSL_CACHE_DIR": str(cache), "PTXDSL_NO_CACHE": "" if keep_ptx else "1"}
            found.append(run_process([*compile_, "--check", check], folder, {**environment, **own}))
        found = found[1:]  # the first fills the page cache, and the cache directory of the warm series
        return median(found)

    import_only = [sys.executable, "-c", "import ptxdsl"]
    results = {
        "cold": timed(warm=False),
        "cached": timed(warm=True, keep_ptx=False),
        f"cached{UNCHECKED}": timed(warm=True, keep_ptx=False, check="off"),
        "PTX cache hit": timed(warm=True),
        "import": min((run_process(import_only, folder, environment) for _ in range(runs)), key=lambda r: r.seconds),
        "python": min((run_process([sys.executable, "-c", ""], folder, environment) for _ in range(runs)),
                      key=lambda r: r.seconds),
    }  # fmt: skip
    for name in ("recompile", "edited"):
        for check, suffix in (("warn", ""), ("off", UNCHECKED)):
            script = [sys.executable, "-c", RECOMPILE, str(kernel), "30", name, check]
            done = subprocess.run(script, cwd=folder, env=environment, check=True, capture_output=True, text=True)
            times = json.loads(done.stdout)
            results[f"{name}{suffix}"] = Run(times["median"], 0, times["processor"])
    return results


def measure_gluon(folder: Path, runs: int) -> list[list[str]]:
    """Rows for Triton's Gluon, where it is installed: its cache empty at every run, as for *cold*."""
    if importlib.util.find_spec("triton") is None:
        return []
    script = [sys.executable, str(HERE / "peers" / "gluon_kernel_a.py"), str(folder / "gluon.ptx")]
    found = []
    for i in range(runs + 1):
        environment = {**os.environ, "TRITON_CACHE_DIR": str(folder / f"triton-{i}")}
        found.append(run_process(script, folder, environment))
    again = subprocess.run([*script, "5"], cwd=folder, check=True, capture_output=True, text=True).stdout
    version, middle = importlib.metadata.version("triton"), median(found[1:])
    return [
        [f"Gluon {version}, cold", f"{middle.seconds:.3f} s", f"{middle.processor:.3f} s", "", ""],
        [f"Gluon {version}, recompile", f"{statistics.median(map(float, again.split())):.3f} s", "", "", "with cubin"],
        [f"Gluon {version}, memory", f"{middle.mebibytes:.0f} MiB", "", "", ""],
    ]


def verdict(fine: bool) -> str:
    return "" if fine else "MISSED"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--wheel", type=Path, help="an already built wheel")
    parser.add_argument("--checkout", action="store_true", help="measure the source tree instead of a wheel")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ptxdsl-compile-time-") as name:
        folder = Path(name)
        site = ROOT if chosen.checkout else install(chosen.wheel, folder)
        results = measure(site, folder, chosen.runs)
        peers = measure_gluon(folder, chosen.runs)
    kind = "the checkout" if chosen.checkout else "an installed wheel"
    print(f"{machine_line()}; kernel A to PTX, {kind}, median of {chosen.runs}")
    peak = max(results["cold"].mebibytes, results["cached"].mebibytes)
    rows, good = [], True
    for name, run in results.items():
        limit = LIMITS.get(name)
        fine = limit is None or min(run.seconds, run.processor) <= limit
        good = good and fine
        rows.append(
            [name, f"{run.seconds:.3f} s", f"{run.processor:.3f} s", f"{limit:.3f} s" if limit else "", verdict(fine)]
        )
    fine = peak <= LIMITS["memory"]
    good = good and fine
    rows.append(["memory", f"{peak:.0f} MiB", "", f"{LIMITS['memory']:g} MiB", verdict(fine)])
    print_table(["", "measured", "processor", "limit", ""], rows + peers)
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
