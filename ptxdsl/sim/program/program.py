"""A kernel as the simulator executes it: calls inlined, basic blocks in the order of the text, variables laid out.

``build`` reports everything that the simulator does not have at once, before anything is executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ptxdsl.diagnostics import CompileError, Diagnostic, error
from ptxdsl.ptx.call_parameters import promote
from ptxdsl.ptx.inline import Flat, Inliner
from ptxdsl.ptx.liveness import CARRY, Liveness, all_registers, reads_and_writes
from ptxdsl.ptx.module import Function, Instruction, Label, Module, Symbol
from ptxdsl.record import dataclass, field
from ptxdsl.sim.host import CHECKS, handler_prefix
from ptxdsl.sim.program.deciding import ACCESSES, Deciding, Flow
from ptxdsl.sim.program.operand_shapes import unfit
from ptxdsl.sim.program.symbols import Symbols, lay_out

MAX_BLOCK = 512  # instructions; longer ones are cut
MAX_REGISTER_BYTES = 1 << 22  # of one warp
MAX_SHARED = (1 << 24) - (1 << 10)  # a CTA's shared addresses have 24 bits
MAX_LOCAL = 512 << 10  # a thread's local memory

LANES, HOST, COLLECTIVE = "lanes", "host", "collective"  # kinds of blocks

COLLECTIVES = ("shfl.sync", "vote.sync", "match", "redux", "activemask", "elect", "bar.warp.sync", "barrier.warp")
# Instructions that nothing in the simulator can tell from doing nothing, where no handler says otherwise.
NO_EFFECT = frozenset((
    "fence", "membar", "prefetch", "prefetchu", "pmevent", "nanosleep", "griddepcontrol", "setmaxnreg",
    "discard", "applypriority",
))  # fmt: skip
_ENDS = frozenset(("bra", "brx", "exit", "ret", "trap", "brkpt"))
_CLOCKS = frozenset(("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"))


@dataclass(slots=True, eq=False)
class Block:
    """kind: LANES, or HOST or COLLECTIVE with a single instruction.

    first: the number of its first instruction (its site). targets: the blocks that its last instruction jumps to
    (``brx.idx``: in order of the table). falls: whether the following block may come next. entered: lanes may come here
    from elsewhere than the block before it, or stand here; loop: by a jump backwards.
    """

    kind: str
    first: int
    instructions: list[Instruction] = field(default_factory=list)
    targets: tuple[int, ...] = ()
    falls: bool = True
    entered: bool = False
    loop: bool = False

    @property
    def end(self) -> Instruction | None:
        """The instruction that ends it, if it is a jump, an exit or a trap."""
        last = self.instructions[-1] if self.instructions else None
        return last if last is not None and last.opcode.partition(".")[0] in _ENDS else None


@dataclass(slots=True, eq=False)
class Program:
    """One kernel, ready to be translated. instructions: all of them, by site number."""

    module: Module
    kernel: Function
    flat: Flat
    blocks: list[Block]
    instructions: list[Instruction]
    registers: dict[str, str]
    symbols: Symbols
    liveness: Liveness
    clock_registers: frozenset[str]
    deciding: Deciding

    def problem(self, code: str, message: str, instruction: Instruction, help: str | None = None) -> Diagnostic:
        """A diagnostic at an instruction: the PTX line; the source line that ``.loc`` names is in its help."""
        where = instruction.location
        if where is not None:
            place = f"from {where.file}:{where.line}"
            help = f"{help}; {place}" if help else place
        return self.flat.problem(code, message, instruction.line, help)


def build(module: Module, kernel: str | None = None) -> Program:
    """The program of a kernel (None: the module's only one). Raises CompileError with all that is not supported."""
    function = choose(module, kernel)
    flat = Inliner(module, function).run()
    promote(flat)
    flat.registers[CARRY.name] = "pred"
    symbols = lay_out(flat.variables.values(), function.parameters)
    blocks, instructions = _blocks(flat)
    successors = [_successors(blocks, number) for number in range(len(blocks))]
    flows: list[Flow] = []
    roots: list[list[str]] = []
    pinned: set[str] = set()
    for block in blocks:
        if block.kind == LANES:
            flows.append([reads_and_writes(instruction) for instruction in block.instructions])
            roots.append(_deciding_reads(block.instructions, flows[-1]))
            continue
        (instruction,) = block.instructions
        named = all_registers(instruction)
        pinned.update(named)
        reads, writes = reads_and_writes(instruction)
        flows.append([(named, []) if block.kind == HOST else (reads, writes)])
        roots.append(flows[-1][0][0])
    pinned &= flat.registers.keys()
    liveness = Liveness(flows, successors, flat.registers, pinned)
    clocks = _clock_closure(flows)
    deciding = Deciding(flows, roots, successors)
    program = Program(module, function, flat, blocks, instructions, flat.registers, symbols, liveness, clocks, deciding)
    _check(program)
    return program


def choose(module: Module, kernel: str | None) -> Function:
    """The kernel of that name, or the only one. Raises CompileError E1114."""
    kernels = module.kernels
    if kernel is None and len(kernels) == 1:
        return next(iter(kernels.values()))
    found = kernels.get(kernel or "")
    if found is None:
        listed = f"it has {', '.join(kernels)}" if kernels else "it has no kernel with a body"
        wanted = f"there is no kernel {kernel}" if kernel is not None else "name the kernel to run"
        raise error("E1114", f"{wanted} in {module.text_name}", None, help=listed)
    return found


def is_collective(opcode: str) -> bool:
    return opcode.startswith(COLLECTIVES)


def _kind(opcode: str) -> str:
    if is_collective(opcode):
        return COLLECTIVE
    if handler_prefix(opcode) is not None or opcode.startswith("call."):
        return HOST
    return LANES


class _Accesses:
    """The state spaces that a block has read and written so far.

    Lanes run a block one chunk after the other. An access starts a new block where another lane could read the
    difference, so that lanes of a warp that talk through memory without a barrier see what they see on the card, where
    they run one instruction after the other. (Stores of several lanes to one place, one after the other, do not: which
    of them stays is nobody's to know.)
    """

    _SPACES: ClassVar[dict[str, int]] = {"shared": 1, "global": 2, "const": 0, "param": 0, "local": 0}
    _memo: ClassVar[dict[str, tuple[int, int]]] = {}

    def __init__(self) -> None:
        self.read = self.written = 0

    def _of(self, opcode: str) -> tuple[int, int]:
        """Of an opcode the spaces that it reads and writes, as bits."""
        found = self._memo.get(opcode)
        if found is None:
            first, *parts = opcode.split(".")
            spaces = [self._SPACES[p] for part in parts if (p := part.partition("::")[0]) in self._SPACES]
            space = spaces[0] if spaces else 3
            found = (space if first in ("ld", "atom", "red") else 0, space if first in ("st", "atom", "red") else 0)
            self._memo[opcode] = found
        return found

    def conflicts(self, opcode: str) -> bool:
        read, written = self._of(opcode)
        return bool(self.written & read or self.read & written)

    def add(self, opcode: str) -> None:
        read, written = self._of(opcode)
        self.read |= read
        self.written |= written


def _blocks(flat: Flat) -> tuple[list[Block], list[Instruction]]:
    blocks: list[Block] = []
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    kinds: dict[str, str] = {}
    current: Block | None = None
    memory = _Accesses()

    def start(kind: str) -> Block:
        nonlocal current
        current = Block(kind, len(instructions))
        blocks.append(current)
        return current

    for item in flat.body:
        if isinstance(item, Label):
            if current is None or current.instructions:
                start(LANES)
            labels[item.name] = len(blocks) - 1
            continue
        opcode = item.opcode
        kind = kinds.get(opcode)
        if kind is None:
            kind = kinds[opcode] = _kind(opcode)
        alone = kind != LANES
        if current is None or (
            current.instructions and (alone or len(current.instructions) >= MAX_BLOCK or memory.conflicts(opcode))
        ):
            start(kind)
        assert current is not None
        if not current.instructions:
            memory = _Accesses()
        memory.add(opcode)
        if alone:
            current.kind = kind
        current.instructions.append(item)
        instructions.append(item)
        if alone or opcode.partition(".")[0] in _ENDS:
            current = None
    if not blocks or blocks[-1].end is None or blocks[-1].instructions[-1].guard is not None:
        # Running off the end of a kernel is a return.
        if current is None or current.kind != LANES:
            start(LANES)
        assert current is not None
        last = Instruction("exit", (), None, flat.kernel.line)
        current.instructions.append(last)
        instructions.append(last)
    blocks[0].entered = True
    for number, block in enumerate(blocks):
        end = block.end
        if block.kind != LANES or (end is not None and end.guard is not None):
            block.entered |= block.kind != LANES
            if number + 1 < len(blocks):
                blocks[number + 1].entered = True
        if end is None:
            continue
        first = end.opcode.partition(".")[0]
        block.falls = end.guard is not None and number + 1 < len(blocks)
        if first == "bra" and isinstance(end.operands[-1], Symbol):
            block.targets = (labels[end.operands[-1].name],)
        elif first == "brx" and isinstance(end.operands[-1], Symbol):
            block.targets = tuple(labels[name] for name in flat.branch_targets.get(end.operands[-1].name, ()))
        for target in block.targets:
            blocks[target].entered = True
            blocks[target].loop |= target <= number
    return blocks, instructions


def _successors(blocks: Sequence[Block], number: int) -> tuple[int, ...]:
    block = blocks[number]
    return (*block.targets, number + 1) if block.falls and number + 1 < len(blocks) else block.targets


def _deciding_reads(instructions: Sequence[Instruction], flow: Flow) -> list[str]:
    """What instructions other than arithmetic read."""
    return [
        name
        for instruction, (reads, writes) in zip(instructions, flow, strict=True)
        if not writes or instruction.opcode.partition(".")[0] in ACCESSES
        for name in reads
    ]


def _clock_closure(flows: Sequence[Flow]) -> frozenset[str]:
    """Registers whose value derives from a clock, whatever the path."""
    derived: dict[str, set[str]] = {}
    seeds: set[str] = set()
    for flow in flows:
        for reads, writes in flow:
            if not _CLOCKS.isdisjoint(reads):
                seeds.update(writes)
            for name in reads:
                derived.setdefault(name, set()).update(writes)
    work = list(seeds)
    while work:
        for name in derived.get(work.pop(), ()):
            if name not in seeds:
                seeds.add(name)
                work.append(name)
    return frozenset(seeds)


def _check(program: Program) -> None:
    problems: list[Diagnostic] = []
    kernel, symbols = program.kernel, program.symbols
    for what, size, limit in (
        ("shared memory of a CTA", symbols.static_shared, MAX_SHARED),
        ("local memory of a thread", symbols.local_bytes, MAX_LOCAL),
        ("registers of a warp", 256 * len(program.liveness.slots), MAX_REGISTER_BYTES),
    ):
        if size > limit:
            message = f"kernel {kernel.name} wants {size} bytes of {what}; the simulator has {limit}"
            problems.append(program.flat.problem("E1113", message, kernel.line))
    for block in program.blocks:
        if block.kind != HOST:
            continue
        (instruction,) = block.instructions
        prefix = handler_prefix(instruction.opcode)
        refused = unfit(instruction, program.flat.registers) if prefix is not None else None
        if refused is None and prefix in CHECKS:
            refused = CHECKS[prefix](instruction)
        if prefix is None:
            name = instruction.opcode.removeprefix("call.")
            problems.append(
                program.problem("E1112", f"function {name} has no body, and the simulator none for it", instruction)
            )
        elif refused is not None:
            problems.append(program.problem("E1110", f"{instruction.opcode}: {refused}", instruction))
    if problems:
        raise CompileError(problems)
