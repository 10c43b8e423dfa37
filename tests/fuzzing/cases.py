"""One program of the fuzzer with what it is compiled with, and where it comes from."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
CORPUS = (
    TESTS.parent / "samples", TESTS.parent / "stdlib", TESTS / "data" / "examples", TESTS / "data" / "oracle",
    TESTS / "data" / "programs",
)  # fmt: skip
ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120a", "sm_121a")


@dataclass(frozen=True)
class Case:
    """origin: the kind of program (``tokens``, ``tree``, ``generated``, …), for the summary."""

    origin: str
    data: bytes
    name: str = "fuzz.pdsl"
    kernel: str | None = None
    constants: dict[str, str] = field(default_factory=dict)
    arch: str = "sm_100a"
    wait: str = "try"
    lineinfo: bool = False

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def settings(self) -> str:
        """What a human needs to compile the saved file again."""
        words = [f"--arch {self.arch}", f"--wait {self.wait}"]
        words += [f"-D {name}={value!r}"[:200] for name, value in self.constants.items()]
        words += [f"--kernel {self.kernel}"] if self.kernel else []
        words += ["--lineinfo"] if self.lineinfo else []
        return " ".join(words)


@dataclass
class Corpus:
    """The programs that mutations start from."""

    files: list[tuple[str, str]]

    @classmethod
    def read(cls, folders: tuple[Path, ...] = CORPUS) -> Corpus:
        paths = sorted(p for f in folders for p in f.rglob("*") if p.suffix in (".pdsl", ".mojo"))
        return cls([(p.name, p.read_text(encoding="utf-8")) for p in paths])

    def choose(self, rng: random.Random) -> tuple[str, str]:
        return rng.choice(self.files)


def case_of(seed: str, number: int, makers: dict[str, tuple[int, Callable[[random.Random], Case]]]) -> Case:
    """Program ``number`` of a run: the same for the same seed, whatever ran before."""
    rng = random.Random(f"{seed}:{number}")
    names = list(makers)
    chosen = rng.choices(names, [makers[n][0] for n in names])[0]
    return makers[chosen][1](rng)
