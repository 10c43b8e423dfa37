"""``--arg NAME=SPEC``: what a kernel is given, read from text. Nothing is made here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxdsl.diagnostics import CompileError, Diagnostic, error
from ptxdsl.record import dataclass, field
from ptxdsl.run.formats import FORMATS, SHORT_NAMES

GENERATORS = {
    "zeros": (),
    "ones": (),
    "full": ("value",),
    "nan": (),
    "arange": ("start", "step"),
    "rand": ("seed", "low", "high"),
    "randn": ("seed", "scale"),
    "randint": ("seed", "low", "high"),
}
"""Each generator's own options beside type and shape."""

MAP_OPTIONS = ("box", "swizzle", "interleave", "strides", "fill", "l2")
"""What of an array's specification says how a tensor map looks at it."""

_NUMBER = re.compile(r"[+-]?(0[xX][0-9a-fA-F]+|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)", re.ASCII)


@dataclass(frozen=True)
class ScalarSpec:
    """dtype: as the text says it (``f32:1.5``), or None: the parameter's own."""

    value: int | float | bool
    dtype: str | None = None


@dataclass(frozen=True)
class BytesSpec:
    data: bytes


@dataclass(frozen=True)
class ArraySpec:
    """generator: a key of GENERATORS, or ``file``. shape in elements. options: texts, checked to be known."""

    generator: str
    dtype: str | None
    shape: tuple[int, ...]
    path: str | None = None
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""

    @property
    def is_map(self) -> bool:
        """Whether a tensor map of the array is asked for."""
        return "box" in self.options


Spec = ScalarSpec | BytesSpec | ArraySpec


def arguments(entries: Iterable[str]) -> dict[str, Spec]:
    """``--arg`` entries by name (or position). Raises E1013/E1014 with one diagnostic for every wrong entry."""
    found: dict[str, Spec] = {}
    problems: list[Diagnostic] = []
    for entry in entries:
        name, equals, text = entry.partition("=")
        try:
            if not equals or not name.strip():
                raise _wrong(entry, "expected NAME=SPEC", "for example --arg n=300 or --arg a=randn:f32:1024")
            if name in found:
                raise error("E1014", f"--arg gives '{name}' twice", None, help="leave one of them out")
            found[name] = specification(text, entry)
        except CompileError as problem:
            problems.extend(problem.diagnostics)
    if problems:
        raise CompileError(problems)
    return found


def specification(text: str, entry: str) -> Spec:
    """One SPEC: ``300``, ``f32:1.5``, ``True``, ``bytes:HEX``, ``a.npy``, ``randn:f32:1024x64:seed=3``."""
    head, _, rest = text.partition(":")
    if text in ("True", "False"):
        return ScalarSpec(text == "True")
    if _NUMBER.fullmatch(text):
        return ScalarSpec(number(text))
    if head in FORMATS or head in SHORT_NAMES:
        if rest in ("True", "False"):
            return ScalarSpec(rest == "True", SHORT_NAMES.get(head, head))
        if not _NUMBER.fullmatch(rest):
            raise _wrong(entry, f"'{rest}' is not a number")
        return ScalarSpec(number(rest), SHORT_NAMES.get(head, head))
    if head == "bytes":
        try:
            return BytesSpec(bytes.fromhex(rest))
        except ValueError:
            what = f"'{rest}' is not a sequence of hexadecimal bytes"
            raise _wrong(entry, what, "for example bytes:0a0b0c0d") from None
    if head in GENERATORS:
        return _generator(head, rest, text, entry)
    path, *options = text.split(":")
    if path.endswith(".npy"):
        return ArraySpec("file", None, (), path, _options(options, (), entry), text)
    raise _wrong(
        entry,
        f"'{text}' is neither a number nor an array",
        f"give a number, a .npy file, or one of {', '.join(GENERATORS)} as in randn:f32:1024x64:seed=3",
    )


def _generator(name: str, rest: str, text: str, entry: str) -> ArraySpec:
    dtype, _, rest = rest.partition(":")
    shape, *options = rest.split(":") if rest else [""]
    form = SHORT_NAMES.get(dtype, dtype)
    if form not in FORMATS:
        raise _wrong(entry, f"'{dtype}' is not an element type", f"one of {', '.join(SHORT_NAMES)}")
    if not re.fullmatch(r"\d+(x\d+)*", shape):
        raise _wrong(entry, f"'{shape}' is not a shape", f"for example {name}:{dtype}:1024x64")
    sizes = tuple(map(int, shape.split("x")))
    return ArraySpec(name, form, sizes, None, _options(options, GENERATORS[name], entry), text)


def _options(entries: Iterable[str], own: Iterable[str], entry: str) -> dict[str, str]:
    names = (*own, *MAP_OPTIONS)
    found: dict[str, str] = {}
    for option in entries:
        name, _, value = option.partition("=")
        if name not in names or not value:
            known = ", ".join(f"{n}=…" for n in names)
            raise _wrong(entry, f"'{option}' is not an option here", f"the options are {known}")
        if name in found:
            raise _wrong(entry, f"'{name}' is given twice")
        if name in ("seed", "low", "high", "start", "step", "value", "scale") and not _NUMBER.fullmatch(value):
            raise _wrong(entry, f"'{name}' is a number, not '{value}'")
        found[name] = value
    return found


def number(text: str) -> int | float:
    """A text that _NUMBER takes, as what it looks like."""
    try:
        return int(text, 0) if text.lstrip("+-")[:2].lower() == "0x" else int(text)
    except ValueError:
        return float(text)


def _wrong(entry: str, what: str, help: str | None = None) -> CompileError:
    return error("E1013", f"--arg {entry}: {what}", None, help=help)
