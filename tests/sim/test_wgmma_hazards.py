"""Which uses of a product's registers count as coming before its wait."""

from __future__ import annotations

import pytest

from ptxdsl.ptx.reader import read
from ptxdsl.sim.matrix import wgmma  # noqa: F401 (registers the instructions)
from ptxdsl.sim.matrix.wgmma_hazards import touched_early
from ptxdsl.sim.program.program import build

PRODUCT = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, %d, 1, 1, 1, 0;"
)


def early_use(text: str) -> str | None:
    """The opcode that touches the first product's registers too early. ``PRODUCT`` and so on stand for instructions."""
    for short, long in (
        ("PRODUCT", PRODUCT),
        ("COMMIT", "wgmma.commit_group.sync.aligned;"),
        ("WAIT", "wgmma.wait_group.sync.aligned"),
    ):
        text = text.replace(short, long)
    program = build(
        read(
            ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
            ".reg .f32 %f<9>;\n.reg .b32 %r<9>;\n.reg .b64 %d;\n.reg .pred %p;\n" + text + "\nret;\n}\n"
        )
    )
    product = next(i for i in program.instructions if i.opcode.startswith("wgmma.mma_async"))
    found = touched_early(program.blocks, product)
    return None if found is None else found.opcode


@pytest.mark.parametrize(
    ("text", "opcode"),
    [
        ("PRODUCT COMMIT WAIT 0; add.f32 %f8, %f0, %f1;", None),
        ("PRODUCT COMMIT add.f32 %f8, %f0, %f1; WAIT 0;", "add.f32"),
        ("PRODUCT COMMIT mov.b32 %r8, %r3; WAIT 0;", None),  # A's registers may be read
        ("PRODUCT COMMIT mov.b32 %r3, %r8; WAIT 0;", "mov.b32"),
        ("PRODUCT PRODUCT COMMIT WAIT 0; add.f32 %f8, %f0, %f1;", None),
        ("PRODUCT COMMIT WAIT 1; add.f32 %f8, %f0, %f1; WAIT 0;", "add.f32"),
        ("PRODUCT COMMIT COMMIT WAIT 1; add.f32 %f8, %f0, %f1;", None),  # an empty group is the newer one
        ("PRODUCT WAIT 0; add.f32 %f8, %f0, %f1;", "add.f32"),  # not committed: not waited for
        ("LOOP: PRODUCT COMMIT WAIT 1; @%p bra LOOP; WAIT 0; add.f32 %f8, %f0, %f1;", None),
        ("LOOP: PRODUCT COMMIT WAIT 1; @%p bra LOOP; add.f32 %f8, %f0, %f1; WAIT 0;", "add.f32"),
        ("PRODUCT COMMIT @%p bra SKIP; WAIT 0; SKIP: add.f32 %f8, %f0, %f1;", "add.f32"),
        ("PRODUCT COMMIT ret; add.f32 %f8, %f0, %f1;", None),
    ],
)  # fmt: skip
def test_uses_before_the_wait(text: str, opcode: str | None) -> None:
    assert early_use(text) == opcode
