"""Loops that poll an mbarrier, as the waits that they are.

``mbarrier.try_wait`` and ``test_wait`` only test; a wait is a loop around one. Compilers write it in many ways: with
the test's predicate copied to an integer and compared, with a clock that is read for a back-off, with one test before
the loop. It is a wait where the loop does nothing but test one phase of one mbarrier and can only be left after a test
that was true.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.effects import Kind
from ptxdsl.protocol.ptx_graph import Block, Graph, Wait
from ptxdsl.ptx.liveness import reads_and_writes
from ptxdsl.ptx.module import Immediate, Instruction, Not, Operand, Register
from ptxdsl.ptx.opcodes import effect, sources

# What a polling loop may do besides testing: nothing that another thread could see.
_PASTIMES = frozenset(("mov", "nanosleep", "pmevent"))


def contract_waits(blocks: Sequence[Block], graph: Graph) -> bool:
    """Replaces polling loops by a ``Wait`` in the block of their header; whether there was one.

    blocks: of ``graph``, changed in place; those that are left of a loop are not reached any more.
    """
    changed = False
    for header, whole in graph.loops.items():
        if not any(_is_test(item) for number in whole for item in blocks[number].items):
            continue
        # It may begin where a loop around it does.
        back = [source for source in graph.sources[header] if source in whole]
        for body in (whole, *(graph.natural_loop(header, source) for source in back if len(back) > 1)):
            polled = _Loop(blocks, graph, header, body).wait()
            if polled is not None:
                before, wait, leads_to = polled
                block = blocks[header]
                block.items, block.end, block.targets = [*before, wait], None, (leads_to,)
                changed = True
                break
    return changed


def merge_first_tests(blocks: Sequence[Block], graph: Graph) -> bool:
    """A test whose failure leads to a wait for the same phase is that wait; whether there was one.

    ``test_wait p; @p bra D; W: try_wait p; @!p bra W; D:`` saves a call of the barrier's unit where it is complete.
    """
    changed = False
    for block in blocks:
        if block.end is None or len(block.targets) != 2 or not block.items or block.end.guard is None:
            continue
        test = block.items[-1]
        for number, (taken, other) in enumerate((block.targets, block.targets[::-1])):
            waiting = blocks[taken]
            if waiting.end is not None or waiting.targets != (other,) or len(graph.sources[taken]) != 1:
                continue
            (wait, *more) = waiting.items or (None,)
            if more or not isinstance(wait, Wait) or not isinstance(test, Instruction) or not _is_test(test):
                continue
            # The wait is on the way where the test has failed.
            register, negated = block.end.guard
            fails = negated == (number == 0)
            if not fails or _phase(test) != _phase(wait.test) or test.operands[0] != register:
                continue
            block.items[-1] = Wait(wait.test, {**wait.known, register.name: 1}, wait.lost)
            block.end, block.targets = None, (other,)
            changed = True
            break
    return changed


def _is_test(item: object) -> bool:
    return isinstance(item, Instruction) and item.guard is None and effect(item).kind is Kind.BAR_TEST


def _phase(test: Instruction) -> tuple[Operand, ...]:
    """What is tested: the barrier and the phase; a time limit does not matter to a loop."""
    return sources(test)[:2]


class _Loop:
    def __init__(self, blocks: Sequence[Block], graph: Graph, header: int, body: set[int]) -> None:
        self.blocks = blocks
        self.graph = graph
        self.header = header
        self.body = body
        self.writers: dict[str, list[tuple[int, Instruction]]] = {}
        self.tests: list[tuple[int, Instruction]] = []

    def wait(self) -> tuple[list[Instruction], Wait, int] | None:
        """What the loop does before it waits, the wait that it is, where that leads; None where it is more."""
        for number in self.body:
            for item in self.blocks[number].items:
                if not isinstance(item, Instruction):
                    return None
                what = effect(item)
                if _is_test(item):
                    self.tests.append((number, item))
                elif what.kind is not Kind.PURE and not (
                    what.kind is Kind.READ and item.opcode.partition(".")[0] in _PASTIMES
                ):
                    return None
                for name in reads_and_writes(item)[1]:
                    self.writers.setdefault(name, []).append((number, item))
        before = self.invariant()
        settled = {name for item in before for name in reads_and_writes(item)[1]}
        phases = {_phase(test) for _, test in self.tests}
        if len(phases) != 1 or any(name in self.writers and name not in settled for name in _names(*phases)):
            return None
        exits = {t for number in self.body for t in self.blocks[number].targets if t not in self.body}
        if len(exits) != 1 or not all(self.succeeded(number) for number in self.body):
            return None
        known: dict[str, int] = {}
        for name in self.writers.keys() - settled:
            found = self.outcome(name)
            if found is not None and found[1] is not None:
                known[name] = found[1]
        wait = Wait(self.tests[0][1], known, frozenset(self.writers) - known.keys() - settled)
        return before, wait, exits.pop()

    def invariant(self) -> list[Instruction]:
        """What the header computes anew in each turn, though it is always the same."""
        found: list[Instruction] = []
        settled: set[str] = set()
        for item in self.blocks[self.header].items:
            if not isinstance(item, Instruction) or item.guard is not None or effect(item).kind is not Kind.PURE:
                continue
            reads, writes = reads_and_writes(item)
            if all(name not in self.writers or name in settled for name in reads) and all(
                len(self.writers[name]) == 1 for name in writes
            ):
                found.append(item)
                settled.update(writes)
        return found

    def succeeded(self, number: int) -> bool:
        """Whether leaving the loop from a block means that a test was true."""
        block = self.blocks[number]
        leaves = [target not in self.body for target in block.targets]
        if not any(leaves):
            return bool(block.targets)
        if block.end is None or block.end.guard is None or len(leaves) != 2 or all(leaves):
            return False
        register, negated = block.end.guard
        found = self.outcome(register.name)
        if found is None or not self.graph.dominates(found[2], number):
            return False
        left_if = 1 - negated if leaves[0] else int(negated)  # the register's value on the way out
        return found[0] != left_if and found[1] == left_if

    def outcome(self, name: str) -> tuple[int | None, int | None, int] | None:
        """Of a register that tells of the test: what it holds after a failure and a success, and the block that writes
        it."""
        writers = self.writers.get(name, [])
        if not writers or writers[0][1].guard is not None:
            return None
        number, writer = writers[0]
        if all(_is_test(w) and w.operands[0] == Register(name) for _, w in writers):
            return 0, 1, number
        if len(writers) != 1:
            return None
        first, *rest = writer.opcode.split(".")
        operands = writer.operands
        if first in ("mov", "not") and len(operands) == 2:
            inner = self.either(operands[1])
            if inner is None or (first == "not" and "pred" not in rest):
                return None
            values = inner if first == "mov" else tuple(None if v is None else 1 - v for v in inner)
            return values[0], values[1], number
        if first == "selp" and len(operands) == 4:
            chosen, a, b = self.either(operands[3]), self.either(operands[1]), self.either(operands[2])
            if chosen is None or a is None or b is None:
                return None
            picked = [(a if c else b)[i] for i, c in enumerate(chosen)]
            return picked[0], picked[1], number
        if first == "setp" and rest[:1] in (["eq"], ["ne"]) and len(operands) == 3 and len(rest) == 2:
            left, right = self.either(operands[1]), self.either(operands[2])
            if left is None or right is None or None in left + right:
                return None
            equal = [int((a == b) == (rest[0] == "eq")) for a, b in zip(left, right, strict=True)]
            return equal[0], equal[1], number
        return None

    def either(self, operand: Operand) -> tuple[int | None, int | None] | None:
        """An operand after a failure and after a success."""
        if isinstance(operand, Immediate) and operand.kind == "int":
            return operand.value, operand.value
        if isinstance(operand, Not):
            inner = self.outcome(operand.operand.name)
            if inner is None or inner[0] is None or inner[1] is None:
                return None
            return 1 - inner[0], 1 - inner[1]
        if isinstance(operand, Register):
            inner = self.outcome(operand.name)
            return None if inner is None else inner[:2]
        return None


def _names(operands: tuple[Operand, ...]) -> list[str]:
    return reads_and_writes(Instruction("st", operands, None, 0))[0]
