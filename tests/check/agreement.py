"""The protocol of a kernel as TIR has it and as its PTX has it, compared thread by thread.

Both models are executed with numbers for what is unknown before the launch. Every thread that is looked at must do the
same operations on the same bytes in the same order in both, with the same shared memory written between them; of reads
and repeated writes the compiler may leave some out.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

from model_threads import NOTHING, Accesses, Event, Thread, covers

from ptxdsl import driver
from ptxdsl.check.boxes import affine
from ptxdsl.diagnostics import CompileError
from ptxdsl.imports import read_file
from ptxdsl.options import Options
from ptxdsl.protocol import from_ptx, from_tir
from ptxdsl.protocol.expressions import TENSOR
from ptxdsl.protocol.model import Branch, Kernel, Loop, Node, Op, Place, Seq
from ptxdsl.protocol.rewriting import mapped
from ptxdsl.ptx.reader import read
from ptxdsl.record import replace
from ptxdsl.signature import KernelSignature

# What integers are where a kernel does not say: turns of loops around the stages of rings.
TRIPS = (0, 1, 2, 3, 4, 5, 8)
BLOCK = (256, 1, 1)
# Threads of a warp that are looked at; of the first warp, where barriers are initialised, more with the first and the
# last combination of arguments.
LANES = (0, 31)
FIRST = (*range(13), 31)
MOST_RUNS = 10  # combinations of arguments
_THOUSANDS = range(1000, 10_000)  # of turns show nothing new
# Two CTAs, which take turns from run to run.
GRIDS = (
    {"nctaid_x": 3, "nctaid_y": 2, "ctaid_x": 1, "ctaid_y": 1, "ctaid_z": 0, "cluster_ctarank": 1},
    {"nctaid_x": 2, "nctaid_y": 1, "ctaid_x": 0, "ctaid_y": 0, "ctaid_z": 0, "cluster_ctarank": 0},
)


@dataclass(frozen=True)
class Case:
    """A file with values for its comptime parameters. integers: by name the values that are tried."""

    path: Path
    constants: Mapping[str, int | str] = field(default_factory=dict)
    integers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shape: tuple[int, int, int] = BLOCK
    runs: int = MOST_RUNS

    @property
    def name(self) -> str:
        return "-".join([self.path.stem, *(f"{name}{value}" for name, value in self.constants.items())])


def cases(
    path: Path, integers: Mapping[str, tuple[int, ...]] | None = None, constants: Mapping[str, int] | None = None
) -> list[Case]:
    """What a file's header says; integers, constants: what is tried in the place of that.

    The header: ``launch: … block N``, ``args: … n: int32 in [v …]``, ``constants: NAME in [v …]``.
    """
    text = re.sub(r"\n#  +", " ", path.read_text())
    head = dict(re.findall(r"^# (launch|args|constants|shows at): (.*)$", text, re.MULTILINE))
    block = re.search(r"\bblock \(?(\d+)", head.get("launch", ""))
    shape = (int(block[1]), 1, 1) if block else BLOCK
    tried = re.findall(r"(\w+) in (\[[^\]]*\])", head.get("constants", ""))
    found = []
    for values in itertools.product(*(eval(text) for _, text in tried)):
        chosen = {**dict(zip((name for name, _ in tried), values, strict=True)), **(constants or {})}
        said = {
            name: tuple(sorted({v for v in eval(values, {}, dict(chosen)) if v not in _THOUSANDS} | {*TRIPS}))
            for name, values in re.findall(r"(\w+): u?int\d+ in (\[[^\]]*\])", head.get("args", ""))
        }
        found.append(Case(path, chosen, {**said, **(integers or {})}, shape))
    return found


def models(case: Case, options: Options) -> list[tuple[Kernel, Kernel, KernelSignature]]:
    """Of each kernel its protocol in TIR and in PTX."""
    constants = {name: str(value) for name, value in case.constants.items()}
    job = driver.Job(read_file(str(case.path)), constants=constants, options=options)
    stages = {stage.name: stage.run for stage in driver.STAGES}
    typed = stages["tir"](job, stages["ast"](job, job.source))
    of_tir = [(from_tir.kernel_model(kernel), kernel.signature) for kernel in typed.kernels]
    text = stages["ptx"](job, stages["llvm"](job, stages["rings"](job, typed))).emitted.ptx
    module = read(text, f"{case.path.stem}.ptx")
    of_ptx = {kernel.name: kernel for kernel in from_ptx.kernel_models(module)}
    found = [(kernel, of_ptx[kernel.name], signature) for kernel, signature in of_tir]
    for kernel, signature in of_tir:
        if of_ptx[kernel.name].by_position:  # there is another form of it
            whole = from_ptx.kernel_model(module, module.kernels[kernel.name], by_position=False)
            found.append((kernel, whole, signature))
    return found


def models_of_some_target(case: Case, targets: Iterable[str]) -> list[tuple[Kernel, Kernel, KernelSignature]]:
    """For the first target that has what the kernel wants."""
    problem: Exception | None = None
    for target in targets:
        try:
            return models(case, Options(target, check="off"))
        except CompileError as error:
            problem = error
    assert problem is not None
    raise problem


def by_source_names(kernel: Kernel) -> Kernel:
    """With shared variables by the names that the source has."""
    prefix = f"{kernel.name}_"
    arrays = tuple(
        type(array)(array.name.removeprefix(prefix), array.base, array.bytes, array.element, array.span)
        for array in kernel.arrays
    )
    return Kernel(kernel.name, kernel.span, kernel.program, arrays, kernel.variables, kernel.threads, kernel.cluster)


def without_boxes(kernel: Kernel) -> Kernel:
    """With tensor copies whose bytes are not known, and nothing of tensor memory: PTX does not say that."""

    def unsized(node: Node) -> Node | None:
        if isinstance(node, Op) and node.what.space == "tensor":
            writes, reads = (tuple(p for p in places if not in_tensor(p)) for places in (node.writes, node.reads))
            return replace(node, writes=writes, reads=reads, count=None)
        if not isinstance(node, Op) or not node.name.startswith(("tensor_load", "tensor_store", "tensor_reduce")):
            return None
        writes, reads = (tuple(Place(p.address, None) for p in places) for places in (node.writes, node.reads))
        return replace(node, writes=writes, reads=reads)

    return replace(kernel, program=mapped(kernel.program, unsized))


def in_tensor(place: Place) -> bool:
    return place.address is not None and bool(affine(place.address, 1, {}) & TENSOR)


class Recorder(Thread):
    """A thread that remembers which operations of the model it did."""

    def __init__(self, *arguments: Any, done: set[int]) -> None:
        super().__init__(*arguments)
        self.done = done

    def _operation(self, op: Op) -> None:
        self.done.add(id(op))
        super()._operation(op)


@dataclass
class Comparison:
    """difference: the first place where a thread does another thing in PTX than in TIR, or None.

    idle: lines of operations that no thread came to with these arguments, in either.
    """

    difference: str | None
    idle_tir: list[int]
    idle_ptx: list[int]
    operations: int


def compare(case: Case, tir: Kernel, ptx: Kernel, signature: KernelSignature) -> Comparison:
    """Raises ``model_threads.Undetermined``."""
    tir, ptx = by_source_names(without_boxes(tir)), by_source_names(ptx)
    shape = tir.threads or case.shape
    of_tir: set[int] = set()
    of_ptx: set[int] = set()
    count = 0
    tried = list(arguments(signature, case.integers, case.runs))
    if len(tried) == 1:
        tried *= len(GRIDS)
    for run, values in enumerate(tried):
        given = inputs(values, shape, GRIDS[run % len(GRIDS)])
        for number in threads(shape, FIRST if run in (0, len(tried) - 1) else LANES):
            expected = Recorder(tir, shape, number, given, done=of_tir).run()
            found = Recorder(ptx, shape, number, given, done=of_ptx).run()
            count += len(expected)
            what = first_difference(expected, found)
            if what is not None:
                return Comparison(f"thread {number}, arguments {values}: {what}", [], [], count)
    return Comparison(None, _idle(tir, of_tir), _idle(ptx, of_ptx), count)


def _idle(kernel: Kernel, done: set[int]) -> list[int]:
    return sorted(node.span.line for node in _live(kernel.program) if isinstance(node, Op) and id(node) not in done)


def _live(node: Node) -> Iterator[Node]:
    """A node and what is in it, but for the arms that a constant condition rules out: TIR has them still."""
    if isinstance(node, Branch) and node.condition.op == "const":
        yield from _live(node.then if node.condition.value else node.orelse)
        return
    yield node
    inner: tuple[Node, ...] = ()
    if isinstance(node, Seq):
        inner = node.nodes
    elif isinstance(node, Branch):
        inner = (node.then, node.orelse)
    elif isinstance(node, Loop):
        inner = (node.body,)
    for one in inner:
        yield from _live(one)


def arguments(signature: KernelSignature, integers: Mapping[str, Iterable[int]], runs: int) -> Iterator[dict[str, int]]:
    """Values for the parameters, by ``#number``; pointers lie apart from each other."""
    choices: list[list[int]] = []
    for number, (leaf, param) in enumerate(zip(signature.leaves, _flat(signature.params), strict=True)):
        scalar = param.kind == "scalar"
        choices.append(list(integers.get(leaf, TRIPS)) if scalar else [(number + 1) << 33])
    together = list(itertools.product(*choices))
    step = max(1, -(-len(together) // runs))
    while any(step > 1 and len(choice) > 1 and step % len(choice) == 0 for choice in choices):
        step += 1  # or the last parameters would always have the same value
    for values in together[::step]:
        yield {f"#{number}": value for number, value in enumerate(values)}


def _flat(params: Iterable[Any]) -> Iterator[Any]:
    for param in params:
        if param.kind == "struct":
            yield from _flat(param.fields)
        else:
            yield param


def inputs(
    values: Mapping[str, int], shape: tuple[int, int, int], grid: Mapping[str, int]
) -> Callable[[str, str, int], int]:
    """Leaves: parameters by their numbers, dimensions; loads are small numbers that depend on the address alone."""
    known = {**grid, **{f"ntid_{axis}": size for axis, size in zip("xyz", shape, strict=True)}}

    def of(kind: str, name: str, width: int) -> int:
        number = name[name.rfind("#") :]
        if kind == "load":
            return crc32(f"{number} {width}".encode()) % 5
        return values[number] if number in values else known.get(name, 1)

    return of


def threads(shape: tuple[int, int, int], first: Iterable[int]) -> list[int]:
    """Those of the first warp that are given, and LANES of the others."""
    size = shape[0] * shape[1] * shape[2]
    others = (warp + lane for warp in range(32, size, 32) for lane in LANES)
    return [number for number in (*first, *others) if number < size]


def first_difference(expected: list[Event | Accesses], found: list[Event | Accesses]) -> str | None:
    want, have = _in_segments(expected), _in_segments(found)
    for position, ((event, accesses), (other, touched)) in enumerate(zip(want, have, strict=False)):
        if event != other:
            return f"operation {position}: {event} in TIR, {other} in PTX"
        if accesses.writes != touched.writes:
            return f"before operation {position} ({event}) writes {accesses.writes} in TIR, {touched.writes} in PTX"
        if not covers(accesses.reads, touched.reads):
            return f"before operation {position} ({event}) reads {accesses.reads} in TIR, {touched.reads} in PTX"
    if len(want) != len(have):
        return f"{len(want)} operations in TIR, {len(have)} in PTX"
    return None


def _in_segments(events: list[Event | Accesses]) -> list[tuple[Event | None, Accesses]]:
    """Each operation with the accesses before it; the last ones with None."""
    found: list[tuple[Event | None, Accesses]] = []
    before = NOTHING
    for event in events:
        if isinstance(event, Accesses):
            before = event
        else:
            found.append((event, before))
            before = NOTHING
    found.append((None, before))
    return found
