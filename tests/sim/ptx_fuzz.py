"""Runs PTX that nobody would write in the simulator, in worker processes, and looks at how each run ends.

    python tests/sim/ptx_fuzz.py --count 5000 --seed 1 --jobs 2

Each must end in a report, or in diagnostics that can be shown, within the limits given and 20 s of processor time: no
traceback, no death of the process. Exit status 1 if one does not; ``--show N`` prints text N and how it ends.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import resource
import subprocess
import sys
import time
import traceback
from functools import lru_cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "ptx"), str(TESTS / "sim"), str(TESTS.parent)]

import numpy as np  # noqa: E402
import tcgen05_gemm  # noqa: E402
from ptx_mutation import mutate  # noqa: E402

from ptxdsl.diagnostics import CompileError, LaunchError  # noqa: E402
from ptxdsl.kernel_cache import compile_kernel  # noqa: E402
from ptxdsl.options import Options  # noqa: E402
from ptxdsl.ptx.reader import read  # noqa: E402
from ptxdsl.sim.copies.tensor_map import TensorMap  # noqa: E402
from ptxdsl.sim.launch import Limits, simulate  # noqa: E402
from ptxdsl.syntax.parse import read_source  # noqa: E402

# tcgen05: a plain type, a pair of CTAs, scaled types
GEMMS = (
    tcgen05_gemm.Gemm("f16", 128, 64, 16, 0, 0),
    tcgen05_gemm.Gemm("f16", 256, 64, 16, 1, 1, pair=True),
    tcgen05_gemm.Gemm("mxf8f6f4", 128, 64, 32, 0, 0),
    tcgen05_gemm.Gemm("mxf4nvf4", 256, 128, 64, 1, 1, pair=True, scale_type=0),
)
LIMITS = Limits(steps=300_000, turns=4_000, memory=64 << 20)
MEMORY_LIMIT = 6 << 30  # bytes of address space of a worker
KILL_AFTER = 60  # seconds of processor time for one text, then the worker is ended
SLOW = 20.0
SCHEDULES = ("round-robin", "random:1", "slow:warp0", "slow:tma")
NUMBERS = (0, 1, 2, 3, 7, 16, 31, 32, 64, 255, 4096, 65535, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, -1, 1 << 40)

_INSTRUCTION = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.:]*\s.*;\s*$")
_REGISTER = re.compile(r"%(?!tid|ctaid|ntid|nctaid|laneid|cluster|clock|lanemask|dynamic|total|warpid|smid|gridid)\w+")
_NUMBER = re.compile(r"(?<![\w%.])-?\d+(?![\w.])")


@lru_cache
def corpus() -> list[str]:
    """PTX of others, of the tests and our own."""
    paths = [*sorted((TESTS / "ptx" / "data").glob("*.ptx")), *sorted((TESTS / "card" / "kernels").glob("*.ptx"))]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    for path in (
        *sorted((TESTS.parent / "samples").glob("*.pdsl")),
        *sorted((TESTS / "sim" / "faults").glob("*_clean.pdsl")),
    ):
        source = path.read_text()
        arch = re.search(r"# (?:arch|targets): (\w+)", source)
        names = re.search(r"# constants: (.*)", source)
        constants = {}
        for entry in names[1].split("; ") if names else ():
            name, values = entry.split(" in ")
            constants[name] = values.strip("[]").split(", ")[-1]
        options = Options(arch[1] if arch else "sm_90a")
        texts.append(compile_kernel(read_source(path, path.name), None, tuple(constants.items()), options).ptx)
    texts += [tcgen05_gemm.ptx(gemm) for gemm in GEMMS]
    return texts


def text_of(seed: str, number: int) -> str:
    """Text ``number``: mutated by characters, or (mostly) by instructions, so that it still can be read."""
    rng = random.Random(f"{seed}:{number}")
    base, other = rng.choice(corpus()), rng.choice(corpus())
    if rng.random() < 0.15:
        base = rng.choice(corpus()[-len(GEMMS) :])
    if rng.random() < 0.2:
        return mutate(base, rng, other)
    lines, others = base.split("\n"), other.split("\n")
    for _ in range(rng.randint(1, 5)):
        _change(lines, others, rng)
    return "\n".join(lines)


def _change(lines: list[str], others: list[str], rng: random.Random) -> None:
    places = [i for i, line in enumerate(lines) if _INSTRUCTION.match(line)]
    if not places:
        return
    at, another = rng.choice(places), rng.choice(places)
    line = lines[at]
    match rng.randrange(14):
        case 0:
            lines[at] = ""
        case 1:
            lines.insert(at, lines[another])
        case 2:
            lines[at], lines[another] = lines[another], line
        case 3:
            foreign = [one for one in others if _INSTRUCTION.match(one)]
            lines[at] = rng.choice(foreign or [""])
        case 4 | 5:
            registers = _REGISTER.findall("\n".join(lines))
            lines[at] = _one(_REGISTER, line, rng, lambda _: rng.choice(registers or ["%r1"]))
        case 6 | 7:
            lines[at] = _one(_NUMBER, line, rng, lambda _: str(rng.choice(NUMBERS)))
        case 8:  # a part of an opcode
            parts = re.findall(r"\.[\w:]+", lines[another]) or [".u32"]
            lines[at] = _one(re.compile(r"\.[a-z][\w:]*"), line, rng, lambda _: rng.choice(parts))
        case 9:
            predicates = re.findall(r"%p\d+", "\n".join(lines)) or ["%p1"]
            lines[at] = f"@{rng.choice(['', '!'])}{rng.choice(predicates)} {line.strip()}"
        case 11 | 12 | 13:  # operands
            lines[at] = _other_operands(line, rng)
        case 10:  # numbers of declarations and directives
            heads = [
                i for i, one in enumerate(lines) if re.match(r"\s*\.(reg|shared|maxntid|reqntid|local|global|ext)", one)
            ]
            if heads:
                head = rng.choice(heads)
                lines[head] = _one(re.compile(r"\d+"), lines[head], rng, lambda _: str(abs(rng.choice(NUMBERS))))


def _other_operands(line: str, rng: random.Random) -> str:
    """The instruction with an operand more, one fewer, two in each other's places, or another one in one's place."""
    head, _, rest = line.strip().rstrip(";").partition(" ")
    operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest)
    operands = [operand.strip() for operand in operands if operand.strip()]
    if not operands:
        return f"{head} %r1;"
    i, j = rng.randrange(len(operands)), rng.randrange(len(operands))
    odd = (
        "_",
        "1",
        "-1",
        "0f3F800000",
        "%p1",
        "%tid.x",
        "[%r1]",
        "{%r1, %r2}",
        "!%p1",
        "%p1|%p2",
        "WARP_SZ",
        "nothing",
    )
    match rng.randrange(4):
        case 0:
            del operands[i]
        case 1:
            operands.insert(i, operands[j])
        case 2:
            operands[i], operands[j] = operands[j], operands[i]
        case 3:
            operands[i] = rng.choice(odd)
    return f"{head} {', '.join(operands)};"


def _one(pattern: re.Pattern[str], line: str, rng: random.Random, new) -> str:
    found = list(pattern.finditer(line))
    if not found:
        return line
    match = rng.choice(found)
    return line[: match.start()] + new(match[0]) + line[match.end() :]


def run(text: str, number: int) -> str:
    """How a text ends: a status, or the code of the first diagnostic. Raises what nothing should raise."""
    rng = random.Random(number)
    try:
        module = read(text, "fuzz.ptx")
        kernels = list(module.kernels.values())
        if not kernels:
            return "no kernel"
        kernel = rng.choice(kernels)
        threads = 1
        for extent in kernel.reqntid or (rng.choice((32, 64, 96, 128, 33, 1)),):
            threads *= extent
        cluster = kernel.reqnctapercluster
        arguments: list[object] = []
        for parameter in kernel.parameters:
            size = parameter.size or 8
            if size == 8 and rng.random() < 0.9:
                arguments.append(np.zeros(4096, np.uint32) if rng.random() < 0.5 else np.arange(4096, dtype=np.uint32))
            elif size <= 8:
                arguments.append((rng.choice((0, 1, 2, 5, 64)) % (1 << 8 * size - 1)).to_bytes(size, "little"))
            elif size == 128:
                array, rows = np.zeros((256, 256), np.uint8), rng.choice((32, 64, 128, 256))
                arguments.append(TensorMap(array, (rows, rng.choice((64, 128))), swizzle=rng.choice(("none", "128B"))))
            else:
                arguments.append(bytes(size))
        report = simulate(
            text,
            kernel.name,
            grid=2 if cluster is None else cluster,
            block=min(threads, 4096) if kernel.reqntid is None else kernel.reqntid,
            shared_bytes=rng.choice((0, 1024, 65536, 200_000, 200_000)),
            arguments=arguments,
            limits=LIMITS,
            schedule=rng.choice(SCHEDULES),
            text_name="fuzz.ptx",
        )
    except (CompileError, LaunchError) as problem:
        for diagnostic in problem.diagnostics:
            assert diagnostic.render()
        return problem.diagnostics[0].code
    report.render()
    assert report.status in ("finished", "deadlock", "fault", "limit"), report.status
    assert report.finished or report.diagnostics
    return report.status


# -------------------------------------------------------------------------------------------------------------- workers


def work(seed: str) -> None:
    """Answers each number in standard input with a line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    corpus()
    for line in sys.stdin:
        number = int(line)
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(
            resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + KILL_AFTER, resource.RLIM_INFINITY)
        )
        start = time.process_time()
        try:
            answer = run(text_of(seed, number), number)
            seconds = time.process_time() - start
            if seconds > SLOW:
                answer = f"FAILED slow: {seconds:.0f} s, then {answer}"
        except BaseException as defect:
            where = traceback.extract_tb(defect.__traceback__)[-1]
            said = " ".join(str(defect).split())[:200]
            answer = f"FAILED {type(defect).__name__} in {Path(where.filename).name}:{where.lineno}: {said}"
        print(answer, flush=True)


class Worker:
    def __init__(self, seed: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work", "--seed", seed],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.number = -1

    def give(self, number: int) -> None:
        assert self.process.stdin is not None
        self.number = number
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        return line or f"FAILED death: status {self.process.wait()}"

    def end(self) -> None:
        self.process.communicate()


def fuzz(count: int, seed: str, jobs: int, first: int = 0) -> tuple[dict[str, int], dict[int, str]]:
    """How many texts ended in which way, and what went wrong, by number."""
    outcomes: dict[str, int] = collections.Counter()
    failures: dict[int, str] = {}
    corpus()  # compiled once, into the cache
    workers = [Worker(seed) for _ in range(jobs)]
    numbers = list(range(first, first + count))
    for start in range(0, count, jobs):
        turn = list(zip(workers, numbers[start : start + jobs], strict=False))
        for worker, number in turn:
            worker.give(number)
        for i, (worker, number) in enumerate(turn):
            answer = worker.answer()
            outcomes["failed" if answer.startswith("FAILED") else answer] += 1
            if answer.startswith("FAILED"):
                failures[number] = answer
                print(f"#{number} {answer}", flush=True)
            if worker.process.poll() is not None:
                workers[i] = Worker(seed)
    for worker in workers:
        worker.end()
    return outcomes, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.seed)
        return 0
    if options.show is not None:
        text = text_of(options.seed, options.show)
        print(text)
        print(run(text, options.show))
        return 0
    start = time.monotonic()
    outcomes, failures = fuzz(options.count, options.seed, options.jobs, options.first)
    print(", ".join(f"{n} {what}" for what, n in sorted(outcomes.items(), key=lambda item: -item[1])))
    print(f"{options.count} texts, seed {options.seed}, {time.monotonic() - start:.0f} s, {len(failures)} failed")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
