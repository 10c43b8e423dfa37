"""What the checker finds, misses and says in vain, and what it costs.

    python benchmarks/checker.py [--quick] [--peer COMMAND]

The corpus of tests/check (clean kernels, faulty ones with their repaired twins), the examples, and the mutants of the
clean kernels: one for each operator and kernel that it fits. ``--quick`` leaves the mutants out. They are judged by two
processes, and their time is that of a clock on the wall; all other times are processor seconds of one core. ``--peer``:
the command of SentryWard (PyPI: sentryward), if it is not on the path; what it says of the same kernels' PTX for one
launch. Exits 1 where something is missed, said in vain, or slower than the limit beside it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT), str(ROOT / "tests" / "check"), str(ROOT / "tests" / "sim")]

from checker_peer import compare  # noqa: E402
from corpus import CLEAN, EXAMPLES, FAULTY, FIXED, Entry, lines_of, read  # noqa: E402
from corpus import PROVED as PROVABLE  # noqa: E402  # noqa: E402
from machine import machine_line, print_table  # noqa: E402
from mutant_classes import equivalent  # noqa: E402
from mutant_runs import Outcome, chosen, judge  # noqa: E402
from mutants import mutants  # noqa: E402
from proofs import arch_of  # noqa: E402

from ptxdsl import driver, tir  # noqa: E402
from ptxdsl.check import proved  # noqa: E402
from ptxdsl.check.classes import CODES  # noqa: E402
from ptxdsl.check.proof import prove  # noqa: E402
from ptxdsl.check.report import FAULT, PROVED, UNPROVED, verdicts  # noqa: E402
from ptxdsl.garbage import rare_collections  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.protocol.from_tir import kernel_model  # noqa: E402
from ptxdsl.races.trace import check_trace  # noqa: E402
from ptxdsl.sim.limits import Limits  # noqa: E402
from ptxdsl.source import Source  # noqa: E402

PIPELINES = [
    path for path in sorted((ROOT / "samples").glob("*.pdsl")) if "SharedMemBarrier" in path.read_text("utf-8")
]
RING = ROOT / "samples" / "04_kernel_a.pdsl"
RUNS = 5
WORKERS = 2
WITHOUT = Limits(steps=1 << 40, turns=1 << 40)


class Table:
    """By class what was found, missed, and said where nothing is wrong."""

    def __init__(self) -> None:
        self.found: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.false: Counter[str] = Counter()
        self.remarks: list[str] = []

    def show(self) -> None:
        rows = [[kind, *(str(c[kind]) for c in (self.found, self.missed, self.false))] for kind in CODES]
        sums = [str(sum(c.values())) for c in (self.found, self.missed, self.false)]
        print_table(["class", "found", "missed", "false"], [*rows, ["all", *sums]])
        for remark in self.remarks:
            print(f"  {remark}")

    @property
    def right(self) -> bool:
        return not self.missed and not self.false


def corpus(table: Table) -> None:
    """Clean kernels and twins must be proved; faulty ones be reported in a class and at a line of their headers."""
    for path in PIPELINES:
        for found in verdicts(_sample(path)):
            if found.verdict != PROVED:
                table.false.update(found.kinds or ["no proof"])
                table.remarks.append(f"{path.stem}: {found.verdict} {', '.join(found.kinds)}")
    for path in (*CLEAN, *FIXED, *EXAMPLES):
        entry = read(path)
        for known in entry.choices():
            found = entry.proof(known)
            if found.verdict != (PROVED if entry.verdict == "proved" else UNPROVED):
                table.false.update(found.kinds or ["no proof"])
                table.remarks.append(f"{entry.name}: {found.verdict} {', '.join(found.kinds)}")
    faulty = [path.with_name(path.name.replace("_clean", "_faulty")) for path in EXAMPLES]
    for path in (*FAULTY, *(path for path in faulty if path.is_file())):
        entry = read(path)
        found = entry.proof(entry.choices()[0])
        if (
            found.verdict == FAULT
            and set(found.kinds) <= set(entry.kinds)
            and lines_of(found.diagnostics) & entry.lines
        ):
            table.found.update(found.kinds[:1])
        else:
            table.missed[entry.kinds[0]] += 1
            table.remarks.append(f"{entry.name}: {found.verdict} {', '.join(found.kinds)}")


@dataclass(frozen=True)
class MutantRun:
    """count: of mutants that are programs. by: by whom they are found. wall, processor: seconds, the latter of all."""

    count: int
    by: Counter[str]
    wall: float
    processor: float


def all_mutants(table: Table) -> MutantRun:
    by: Counter[str] = Counter()
    processor = 0.0
    start = time.perf_counter()
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as workers:
        for outcomes, seconds in workers.map(outcomes_of, PROVABLE):
            processor += seconds
            by.update(_count(table, outcome) for outcome in outcomes)
    return MutantRun(sum(by.values()), by, time.perf_counter() - start, processor)


def outcomes_of(path: Path) -> tuple[list[Outcome], float]:
    """What is said of a kernel's mutants that are programs, and the processor seconds that it took."""
    start = time.process_time()
    entry = read(path)
    outcomes = [judge(entry, mutant) for mutant in chosen(mutants(entry.name, entry.text))]
    return [outcome for outcome in outcomes if outcome.by != "compiler"], time.process_time() - start


def _count(table: Table, outcome: Outcome) -> str:
    mutant, problem = outcome.mutant, outcome.problem
    harmless = equivalent(mutant.kernel, mutant.operator, mutant.place) is not None
    if problem is not None:
        table.remarks.append(f"{mutant.name}: {problem}")
        (table.false if harmless else table.missed)[outcome.kinds[0] if harmless else mutant.accepted[0]] += 1
        return "false alarms" if harmless else "missed"
    if harmless:
        return "equivalent"
    table.found[next(kind for kind in outcome.kinds if kind in mutant.accepted)] += 1
    return f"by the {outcome.by}"


@dataclass(frozen=True)
class Cost:
    """A time of one processor, where the name says nothing else, in seconds."""

    name: str
    value: float
    limit: float

    @property
    def reached(self) -> bool:
        return self.value <= self.limit


def best(measure: Callable[[], float], runs: int = RUNS) -> float:
    return min(measure() for _ in range(runs))


def timed(work: Callable[[], object]) -> float:
    """With garbage looked for as seldom as in a command or a compilation."""
    proved._known.clear()
    gc.collect()
    with rare_collections:
        start = time.process_time()
        work()
        return time.process_time() - start


@dataclass(frozen=True)
class Timed:
    """A kernel's TIR, of which the proof is timed."""

    name: str
    module: Any

    def seconds(self) -> float:
        return best(lambda: timed(lambda: verdicts(self.module)), 3)


def pipelines() -> Iterator[Timed]:
    """All kernels of the corpus and of the samples that have a RolePipeline."""
    for entry in map(read, (*CLEAN, *FIXED, *EXAMPLES)):
        if "RolePipeline[" in entry.text:
            known = entry.choices()[-1]
            constants = {name: str(known[name]) for name in entry.constants}
            yield Timed(entry.name, _tir(entry.text, entry.arch, constants))
    for path in PIPELINES:
        for number, kernel in enumerate(_sample(path).kernels, 1):
            yield Timed(f"{path.stem}, kernel {number}", tir.Module([kernel]))


def _sample(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return _tir(text, arch_of(text), {})


def _tir(text: str, arch: str, constants: Mapping[str, str], kernel: str | None = None) -> Any:
    job = driver.Job(Source("kernel.pdsl", text), kernel, constants=constants, options=Options(arch))
    return driver.run(job, "tir")


def products() -> Iterator[tuple[str, Any]]:
    """The matrix products of the samples: rings of many stages, clusters, pairs of blocks."""
    hopper, blackwell = (ROOT / "samples" / f"{name}.pdsl" for name in ("08_gemm_hopper", "10_gemm_blackwell"))
    for cluster in (1, 2, 4):
        for stages in (3, 4, 5, 6, 8, 12):
            narrow = {"BN": "64", "GROUPS": "1", "C_STAGES": "1"} if stages > 6 else {"BN": "128"}
            constants = {"STAGES": str(stages), "CLUSTER": str(cluster), **narrow}
            yield f"08, {stages} stages, cluster of {cluster}", _tir(hopper.read_text("utf-8"), "sm_90a", constants)
    for split, columns, stages, groups in ((2, 128, 4, 2), (2, 64, 8, 2), (4, 128, 4, 2), (4, 64, 10, 1)):
        constants = {
            "STAGES": str(stages), "SPLIT": str(split), "BN": str(columns), "GROUPS": str(groups), "C_STAGES": "1"
        }  # fmt: skip
        tir = _tir(hopper.read_text("utf-8"), "sm_90a", constants)
        yield f"08, {stages} stages, {columns} columns, K in {split} parts, {groups} warpgroups", tir
    for kernel, ctas, columns, stages in (
        ("gemm", 1, 256, 4), ("gemm", 2, 256, 4), ("gemm", 2, 128, 6), ("gemm", 1, 64, 6), ("gemm", 1, 64, 2),
        ("gemm_scaled", 1, 256, 3), ("gemm_scaled", 2, 256, 3),
    ):  # fmt: skip
        constants = {"CTAS": str(ctas), "BN": str(columns), "STAGES": str(stages)}
        tir = _tir(blackwell.read_text("utf-8"), "sm_100a", constants, kernel)
        yield f"10 {kernel}, {ctas} CTA, {columns} columns, {stages} stages", tir


def proof_seconds(module: tir.Module, quick: bool = False) -> float:
    return timed(lambda: verdicts(module, quick=quick))


def show_products() -> tuple[bool, float, str]:
    """Whether all are proved; what the slowest takes, and its name."""
    rows, right, slowest = [], True, (0.0, "")
    for name, module in products():
        kernel = kernel_model(module.kernels[0])
        assert kernel.threads is not None
        found = prove(kernel, kernel.threads)
        seconds = best(partial(proof_seconds, module), 3)
        rows.append([name, found.verdict, str(found.states), str(found.steps), f"{1000 * seconds:.0f} ms"])
        right = right and found.verdict == PROVED
        slowest = max(slowest, (seconds, name))
    print_table(["matrix product", "verdict", "states", "steps", "processor time"], rows)
    return right, *slowest


def constant_trips(trips: int) -> float:
    """The proof of a ring whose roles go round so often, which is known when it is compiled."""
    text = RING.read_text(encoding="utf-8").replace("range(n)", f"range(Int32({trips}))")
    module = _tir(text, "sm_90a", {})
    (verdict,) = verdicts(module)
    assert verdict.verdict == PROVED
    return best(partial(proof_seconds, module))


@dataclass(frozen=True)
class Traced:
    """A kernel of the corpus with a number of trips that is known when it is launched, under the trace check."""

    entry: Entry
    trips: str  # its name

    @property
    def multiplies(self) -> bool:
        return "wgmma_async" in self.entry.text or "tcgen05" in self.entry.text

    def seconds(self, trips: int) -> float:
        """Of one run."""
        entry = self.entry
        known = {**entry.small(), self.trips: trips}
        given, compiled = entry.bound(known).host(), entry.compiled(known)

        def run() -> None:
            found, report = check_trace(
                compiled, given, grid=entry.grid, block=entry.block, smem=entry.smem, limits=WITHOUT
            )
            assert report.finished and not found.races

        return timed(run)


def traced() -> list[Traced]:
    entries = [*map(read, (*CLEAN, *FIXED, *EXAMPLES)), read(RING)]
    scalars = [(entry, next((a.name for a in entry.arguments if a.size is None), None)) for entry in entries]
    return [Traced(entry, name) for entry, name in scalars if name is not None]


def trace_times(trips: int) -> Iterator[tuple[str, float]]:
    """Of the kernel that takes longest, and of the one among those with matrix products, which the simulator carries
    out: what they take."""
    for products in (False, True):
        kernels = [kernel for kernel in traced() if kernel.multiplies == products]
        slowest = max(kernels, key=lambda kernel: kernel.seconds(trips // 20))
        name = f"{slowest.entry.name}, the slowest{' with products' if products else ''} of {len(kernels)}"
        yield name, best(partial(slowest.seconds, trips), 3)


def added_to_a_compilation() -> tuple[float, str]:
    """What a compilation spends on the check, of the sample where that is most."""
    most = (0.0, "")
    for path in PIPELINES:
        most = max(most, (best(partial(proof_seconds, _sample(path), quick=True)), path.stem))
    return most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without mutants")
    parser.add_argument("--peer", default=shutil.which("sentryward"), help="SentryWard's command")
    options = parser.parse_args()
    print(f"# {machine_line()}\n")
    costs = []
    table = Table()
    corpus(table)
    print(f"corpus: {len(CLEAN)} clean kernels, {len(FAULTY)} faulty ones with their twins, examples, samples")
    table.show()
    right = table.right
    if not options.quick:
        changed = Table()
        run = all_mutants(changed)
        wall = f"{run.count} mutants, wall clock of {WORKERS} processes ({run.processor:.1f} s of processor time)"
        costs.append(Cost(wall, run.wall, 60))
        print(f"\nmutants: {run.count}; " + ", ".join(f"{number} {who}" for who, number in run.by.most_common()))
        changed.show()
        right = right and changed.right and run.count >= 500
    slowest = sorted(((kernel.seconds(), kernel.name) for kernel in pipelines()), reverse=True)
    for title, (seconds, name) in (
        ("slowest", slowest[0]),
        ("second", slowest[1]),
        ("median", slowest[len(slowest) // 2]),
    ):
        costs.append(Cost(f"proof, {title} of {len(slowest)} ({name})", seconds, 0.05))
    costs.append(Cost("proof, 2000 trips known when compiling", constant_trips(2000), 0.05))
    for name, seconds in trace_times(2000):
        costs.append(Cost(f"trace check of 2000 trips ({name})", seconds, 2))
    added, name = added_to_a_compilation()
    costs.append(Cost(f"added to a compilation, most ({name})", added, 0.01))
    print()
    proved, seconds, name = show_products()
    costs.append(Cost(f"proof, slowest matrix product ({name})", seconds, 0.05))
    right = right and proved
    print()
    rows = [[c.name, f"{c.value:.4f} s", f"{c.limit} s", "ok" if c.reached else "FAIL"] for c in costs]
    print_table(["processor time", "is", "limit", ""], rows)
    if options.peer:
        print()
        compare(options.peer, [*map(read, (*CLEAN, *FIXED, *FAULTY))])
    return 0 if right and all(cost.reached for cost in costs) else 1


if __name__ == "__main__":
    sys.exit(main())
