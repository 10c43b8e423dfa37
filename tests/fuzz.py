"""Compiles programs that nobody would write, in worker processes, and looks at how each of them ends.

    python tests/fuzz.py --count 20000 --seed 1 --jobs 2 --save /tmp/fuzz

Each must end in PTX that ptxas accepts or in diagnostics whose spans lie in the text, within 5 s of processor time.
A failure is made smaller and written to the folder ``--save``, one file a defect. Exit status 1 if there was any.
"""

from __future__ import annotations

import argparse
import atexit
import collections
import contextlib
import math
import multiprocessing
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent / "fuzzing"), str(Path(__file__).resolve().parents[1])]

from cases import CORPUS, Case, Corpus, case_of  # noqa: E402
from judge import Failure, Judge  # noqa: E402

from ptxdsl import driver  # noqa: E402

MEMORY_LIMIT = 4 << 30  # bytes of address space for one worker
KILL_AFTER = 8  # seconds of processor time for one program, then the worker is ended: it may be inside LLVM

Maker = Callable[[int], Case]
Answer = tuple[str, Failure | None]


def makers(corpus: Corpus) -> Callable[[str, int], Case]:
    """Programs by seed and number."""
    from generate import generated
    from hostile import hostile
    from mutate import Mutator

    mutator = Mutator(corpus)
    kinds = {
        "tokens": (12, mutator.tokens),
        "tree": (22, mutator.tree),
        "lines": (6, mutator.lines),
        "bytes": (4, mutator.bytes),
        "generated": (28, generated),
        "mutated": (
            14,
            lambda rng: replace(
                c := generated(rng), data=mutator.mutate_tokens(rng, c.text).encode(), origin="mutated"
            ),
        ),
        "hostile": (14, hostile),
    }
    return lambda seed, number: case_of(seed, number, kinds)


# ------------------------------------------------------------------------------------------------------------ workers


def _own_cache() -> None:
    """A cache of the run's own: what other compilers of this user have kept is left alone."""
    if "PTXDSL_CACHE_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="fuzz-cache-")
        os.environ["PTXDSL_CACHE_DIR"] = folder
        atexit.register(shutil.rmtree, folder, True)


def work(channel: Connection, folders: tuple[Path, ...], seed: str) -> None:
    """Answers numbers of programs, or programs, with how they ended."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (the worker's for good)
    os.dup2(sys.stdout.fileno(), 2)
    driver.VERIFIES = True
    make, judge = makers(Corpus.read(folders)), Judge.with_ptxas()
    while True:
        task = channel.recv()
        if task is None:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        thorough = isinstance(task, Case) or task % 16 == 0  # compiled some seven times
        limit = math.ceil(used.ru_utime + used.ru_stime) + KILL_AFTER * (7 if thorough else 1)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        if isinstance(task, Case):
            answer = judge.judge(task, thorough=thorough)
            origin = task.origin
        else:
            case = make(seed, task)
            answer, origin = judge.judge(case, thorough=thorough), case.origin
        channel.send((origin, answer, judge.asked))


class Worker:
    """A process that compiles one program at a time, and can die of it."""

    def __init__(self, folders: tuple[Path, ...], seed: str) -> None:
        context = multiprocessing.get_context("fork")
        self.channel, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, folders, seed), daemon=True)
        self.process.start()
        theirs.close()
        self.task: int | Case | None = None

    def give(self, task: int | Case) -> None:
        self.task = task
        self.channel.send(task)

    def answer(self) -> tuple[str, Answer, int] | None:
        """None if the process has died."""
        try:
            return self.channel.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            return None

    def death(self) -> Failure:
        code = self.process.exitcode or 0
        if code == -24:  # SIGXCPU
            return Failure("hang", "killed", f"more than {KILL_AFTER} s of processor time")
        return Failure("death", f"status {code}", f"the process ended with status {code}")

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.channel.send(None)
        self.channel.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()


# ----------------------------------------------------------------------------------------------------------- minimising


def smaller(case: Case, failure: Failure, ask: Callable[[Case], Failure | None], budget: int = 150) -> Case:
    """The case without the lines, then the tokens, that it fails without; at most ``budget`` trials."""
    from mutate import TOKEN

    for pattern in (re.compile(r"[^\n]*\n|[^\n]+"), TOKEN):
        pieces = pattern.findall(case.text)
        size = len(pieces) // 2
        while size and budget > 0:
            at = 0
            while at < len(pieces) and budget > 0:
                shorter = pieces[:at] + pieces[at + size :]
                trial = replace(case, data="".join(shorter).encode("utf-8", "replace"))
                budget -= 1
                found = ask(trial)
                if found is not None and (found.kind, found.key) == (failure.kind, failure.key):
                    pieces, case = shorter, trial
                else:
                    at += size
            size //= 2
    return case


class Run:
    """One run of the fuzzer."""

    def __init__(
        self, count: int, seed: str, jobs: int, folders: tuple[Path, ...], save: Path | None, first: int = 0
    ) -> None:
        self.count, self.seed, self.jobs, self.folders, self.save, self.first = count, seed, jobs, folders, save, first
        self.failures: dict[tuple[str, str], int] = collections.Counter()
        self.outcomes: dict[str, int] = collections.Counter()
        self.origins: dict[str, int] = collections.Counter()
        self.codes: dict[str, int] = collections.Counter()
        self.asked: dict[int, int] = {}
        self.make: Callable[[str, int], Case] | None = None

    def run(self) -> None:
        numbers = iter(range(self.first, self.first + self.count))
        idle = [Worker(self.folders, self.seed) for _ in range(self.jobs)]
        busy: dict[Connection, Worker] = {}
        while True:
            while idle and (number := next(numbers, None)) is not None:
                worker = idle.pop()
                worker.give(number)
                busy[worker.channel] = worker
            if not busy:
                break
            for channel in wait(list(busy)):
                worker = busy.pop(channel)  # type: ignore[arg-type]
                idle.append(self.took(worker))
        for worker in idle:
            worker.end()

    def took(self, worker: Worker) -> Worker:
        """Notes a worker's answer; the worker to go on with."""
        number = worker.task
        assert isinstance(number, int)
        answer = worker.answer()
        if answer is None:
            self.outcomes["death"] += 1
            failure: Failure | None = worker.death()
            worker = Worker(self.folders, self.seed)
        else:
            origin, (outcome, failure), asked = answer
            self.outcomes["ptx" if outcome == "ptx" else "diagnostics"] += 1
            self.codes[outcome] += 1
            self.origins[f"{origin} {'ptx' if outcome == 'ptx' else 'diagnostics'}"] += 1
            self.asked[id(worker)] = asked
        if failure is not None:
            self.fail(number, failure)
        return worker

    def fail(self, number: int, failure: Failure) -> None:
        key = (failure.kind, failure.key)
        self.failures[key] += 1
        if self.failures[key] > (1 if failure.kind not in ("death", "hang") else 6):
            return
        print(f"#{number} {failure.kind}: {failure.key}", flush=True)
        if self.save is None:
            print("    " + failure.detail.replace("\n", "\n    "), flush=True)
            return
        self.make = self.make or makers(Corpus.read(self.folders))
        case = self.make(self.seed, number)
        case = smaller(case, failure, self.alone, budget=150 if failure.kind not in ("death", "hang") else 8)
        self.save.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"\W+", "_", f"{failure.kind}_{failure.key}")[:80] + f"_{number}"
        (self.save / f"{stem}.pdsl").write_bytes(case.data)
        said = f"#{number} of seed {self.seed}, {case.origin}, {case.name}: {case.settings()}\n\n{failure.detail}\n"
        (self.save / f"{stem}.txt").write_text(said, encoding="utf-8")

    def alone(self, case: Case) -> Failure | None:
        """How a program ends in a process that is there for the trials."""
        spare = getattr(self, "spare", None) or Worker(self.folders, self.seed)
        self.spare: Worker | None = spare
        spare.give(case)
        answer = spare.answer()
        if answer is None:
            self.spare = None
            return spare.death()
        return answer[1][1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="programs")
    parser.add_argument("--first", type=int, default=0, help="number of the first program (to repeat one)")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="more files to mutate")
    parser.add_argument("--save", type=Path, help="folder for failing programs")
    parser.add_argument("--codes", action="store_true", help="count the first diagnostic of every program")
    parser.add_argument("--show", action="store_true", help="print program --first and its end, in this process")
    options = parser.parse_args(arguments)
    folders = (*CORPUS, *options.corpus)
    if options.show:
        case = makers(Corpus.read(folders))(options.seed, options.first)
        print(case.text, case.settings(), sep="\n\n")
        outcome, failure = Judge.with_ptxas().judge(case, thorough=True)
        print(outcome, failure.detail if failure else "as it should", sep="\n")
        return int(failure is not None)
    _own_cache()
    start = time.monotonic()
    run = Run(options.count, options.seed, options.jobs, folders, options.save, options.first)
    with contextlib.suppress(KeyboardInterrupt):  # what is done so far is reported
        run.run()
    for code in sorted(run.codes) if options.codes else ():
        print(f"{run.codes[code]:7} {code}")
    for origin in sorted(run.origins):
        print(f"{run.origins[origin]:7} {origin}")
    print(f"{sum(run.outcomes.values())} programs, seed {options.seed}, {time.monotonic() - start:.0f} s: "
          + ", ".join(f"{n} {what}" for what, n in sorted(run.outcomes.items()))
          + f"; ptxas was asked {sum(run.asked.values())} times; {len(run.failures)} kinds of failure")  # fmt: skip
    for (kind, key), number in sorted(run.failures.items()):
        print(f"{number:7} {kind}: {key}")
    return int(bool(run.failures))


if __name__ == "__main__":
    sys.exit(main())
