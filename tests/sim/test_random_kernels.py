"""Random control flow, compiled for a warp, against the same program run thread by thread in Python."""

import random

import numpy as np
import pytest
from harness import Launch, compile_kernel

from ptxdsl.sim import layout

REGISTERS, PREDICATES, BLOCKS, STEPS = 6, 3, 12, 40
OPERATIONS = {
    "add.u32": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "xor.b32": lambda a, b: a ^ b,
    "mul.lo.u32": lambda a, b: a * b,
    "max.u32": max,
}

# A guard is (predicate, negated) or None; an operand the index of a register, or a constant as a string.
Guard = tuple[int, bool] | None


class RandomKernel:
    """Blocks of (opcode, destination, operands, guard), each ending in (target, guard); ``END`` is block BLOCKS."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks = [[self.instruction() for _ in range(self.random.randrange(5))] for _ in range(BLOCKS)]
        self.ends = [self.end() for _ in range(BLOCKS)]

    def guard(self, likely: float) -> Guard:
        if self.random.random() > likely:
            return None
        return self.random.randrange(PREDICATES), self.random.random() < 0.5

    def instruction(self) -> tuple[str, int, tuple[int | str, int | str], Guard]:
        pick = self.random
        operands = (pick.randrange(REGISTERS), pick.choice([pick.randrange(REGISTERS), str(pick.randrange(100))]))
        if pick.random() < 0.35:
            return "setp.lt.u32", pick.randrange(PREDICATES), operands, self.guard(0.2)
        return pick.choice(list(OPERATIONS)), pick.randrange(REGISTERS), operands, self.guard(0.4)

    def end(self) -> tuple[str, int, Guard]:
        kind = self.random.choices(["bra", "exit", "fall"], [7, 1, 3])[0]
        return kind, self.random.randrange(BLOCKS + 1), self.guard(1.0 if kind == "exit" else 0.8)

    def text(self) -> str:
        def at(guard: Guard) -> str:
            return "" if guard is None else f"@{'!' if guard[1] else ''}%p{guard[0]} "

        lines = [
            ".visible .entry k(.param .u64 p0) {",
            f".reg .b32 %r<{REGISTERS}>, %t, %left; .reg .pred %p<{PREDICATES}>, %done; .reg .b64 %d, %e;",
            "ld.param.u64 %d, [p0]; mov.u32 %t, %tid.x; mad.wide.u32 %d, %t, 4, %d; mov.u32 %left, 0;",
            *(f"add.u32 %r{i}, %t, {i * 37};" for i in range(REGISTERS)),
            *(f"setp.lt.u32 %p{i}, %t, {8 * i + 3};" for i in range(PREDICATES)),
        ]
        for k, (block, (kind, target, guard)) in enumerate(zip(self.blocks, self.ends, strict=True)):
            lines.append(f"B{k}: add.u32 %left, %left, 1; setp.gt.u32 %done, %left, {STEPS}; @%done bra B{BLOCKS};")
            for opcode, destination, (a, b), condition in block:
                name = f"%p{destination}" if opcode.startswith("setp") else f"%r{destination}"
                second = b if isinstance(b, str) else f"%r{b}"
                lines.append(f"{at(condition)}{opcode} {name}, %r{a}, {second};")
            if kind != "fall":
                lines.append(f"{at(guard)}bra B{target};" if kind == "bra" else f"{at(guard)}exit;")
        lines.append(f"B{BLOCKS}:")
        for i in range(1, REGISTERS):
            lines.append(f"mad.lo.u32 %r0, %r0, 31, %r{i};")
        return "\n".join([*lines, "st.global.u32 [%d], %r0; ret; }"])

    def run(self, thread: int) -> int:
        """What thread leaves in memory: 0 if it exits before the end."""
        r = [thread + i * 37 for i in range(REGISTERS)]
        p = [thread < 8 * i + 3 for i in range(PREDICATES)]
        left = k = 0
        while k < BLOCKS:
            left += 1
            if left > STEPS:
                break
            for opcode, destination, (a, b), guard in self.blocks[k]:
                if guard is not None and p[guard[0]] == guard[1]:
                    continue
                second = int(b) if isinstance(b, str) else r[b]
                if opcode.startswith("setp"):
                    p[destination] = r[a] < second
                else:
                    r[destination] = OPERATIONS[opcode](r[a], second) & 0xFFFFFFFF
            kind, target, guard = self.ends[k]
            taken = kind != "fall" and (guard is None or p[guard[0]] != guard[1])
            if taken and kind == "exit":
                return 0
            k = target if taken else k + 1
        for i in range(1, REGISTERS):
            r[0] = (r[0] * 31 + r[i]) & 0xFFFFFFFF
        return r[0]


@pytest.mark.parametrize("seed", range(40))
def test_a_random_kernel(seed: int) -> None:
    kernel = RandomKernel(seed)
    want = [kernel.run(thread) for thread in range(32)]
    code = compile_kernel(kernel.text())
    for fuel in (1 << 20, 1 + seed % 7):
        out = np.zeros(32, np.uint32)
        made = Launch(code, [out], fuel=fuel)
        assert made.run() == layout.ALL_STOPPED
        assert out.tolist() == want
