"""A row of the table of instructions; the docstring of the package says how it is written."""

from __future__ import annotations

from ptxdsl.effects import PURE, Effect
from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Row:
    lowering: str  # "llvm" or "asm"
    text: str
    effect: Effect
    feature: str | None = None  # a key of targets.FEATURES; None: every target
    tied: int | None = None


def llvm(text: str, effect: Effect = PURE, feature: str | None = None) -> Row:
    return Row("llvm", text, effect, feature)


def asm(text: str, effect: Effect = PURE, feature: str | None = None, tied: int | None = None) -> Row:
    return Row("asm", text, effect, feature, tied)
