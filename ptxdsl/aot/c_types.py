"""A kernel's parameters in C: types, names, and what is said of them beside the prototype."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ptxdsl.record import dataclass, field
from ptxdsl.signature import KernelSignature, Param, PointerParam, ScalarParam, StructParam, TensorMapParam

# C has no name for the small floats: their bits are handed over.
SCALARS = {
    "bool": "bool", "int": "int64_t", "uint": "uint64_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float32": "float", "float64": "double", "float16": "uint16_t", "bfloat16": "uint16_t",
    "float8_e4m3fn": "uint8_t", "float8_e5m2": "uint8_t",
}  # fmt: skip
AS_BITS = frozenset({"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"})

# Words of C and C++, macros that compilers and the headers have, and the names that our own code uses.
_RESERVED = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try
typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
NULL EOF BUFSIZ stdin stdout stderr errno linux unix i386
uintptr_t launch fail error module shape arguments kernels
"""
RESERVED = frozenset(_RESERVED.split()) | frozenset(SCALARS.values())


class Names:
    """C names, each given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, text: str) -> str:
        """A name like ``text`` that C and C++ take."""
        name = re.sub(r"[^A-Za-z0-9_]+", "_", text)
        if not name or name[0].isdigit() or name.startswith("_"):
            name = f"k{name}"
        while name in RESERVED or name in self._taken:
            name += "_"
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class Leaf:
    """One parameter of the PTX. c: the expression for it; path: what the kernel's text calls it."""

    param: Param
    c: str
    path: str


@dataclass
class Parameter:
    """One argument of the C function."""

    declaration: str
    comment: str
    leaves: tuple[Leaf, ...]


@dataclass
class Structs:
    """The struct types of a header, each written once, those that others contain first."""

    prefix: str
    names: Names
    texts: list[str] = field(default_factory=list)
    _known: dict[object, str] = field(default_factory=dict)

    def of(self, param: StructParam) -> str:
        key = _layout(param)
        if key not in self._known:
            names, lines = Names(), []
            for inner in param.fields:
                declared = _declared(inner, names.of(inner.name), self)
                lines.append(f"    {declared[0]};{_comment(declared[1])}\n")
            # C has no empty struct
            body = "".join(lines) or "    char unused;\n"
            name = self.names.of(f"{self.prefix}_{param.type}")
            self._known[key] = name
            self.texts.append(f"typedef struct {name} {{\n{body}}} {name};\n")
        return self._known[key]


def parameters(signature: KernelSignature, structs: Structs) -> list[Parameter]:
    """The arguments of the kernel's C function, in their order."""
    names, found = Names(), []
    for param in signature.params:
        name = names.of(param.name)
        declaration, comment = _declared(param, name, structs)
        found.append(Parameter(declaration, comment, tuple(_leaves(param, name, param.name))))
    return found


def _declared(param: Param, name: str, structs: Structs) -> tuple[str, str]:
    """The declaration, and what is to be said of it."""
    if isinstance(param, StructParam):
        return f"{structs.of(param)} {name}", ""
    if isinstance(param, PointerParam):
        element = param.dtype if param.dtype in AS_BITS else SCALARS.get(param.dtype, param.dtype)
        aligned = f", a multiple of {param.align}" if param.align > param.size else ""
        size = "" if param.dtype in SCALARS else f", {param.size} bytes each"
        return f"CUdeviceptr {name}", f"{'' if param.mutable else 'const '}{element} *{size}{aligned}"
    if isinstance(param, TensorMapParam):
        boxes = (f"of {box.dtype} with boxes {box.shape}, swizzle {box.swizzles[0]}" for box in param.boxes)
        return f"const CUtensorMap *{name}", "; ".join(("at a multiple of 64 bytes, as C11 places it", *boxes))
    assert isinstance(param, ScalarParam)
    return f"{SCALARS[param.dtype]} {name}", f"the bits of a {param.dtype}" if param.dtype in AS_BITS else ""


def _comment(text: str) -> str:
    return f" /* {text} */" if text else ""


def _leaves(param: Param, c: str, path: str) -> Iterator[Leaf]:
    if isinstance(param, StructParam):
        names = Names()
        for inner in param.fields:
            yield from _leaves(inner, f"{c}.{names.of(inner.name)}", f"{path}.{inner.name}")
    else:
        yield Leaf(param, c, path)


def _layout(param: Param) -> object:
    if isinstance(param, StructParam):
        return param.type, tuple((inner.name, _layout(inner)) for inner in param.fields)
    if isinstance(param, ScalarParam):
        return param.dtype
    return (param.dtype, param.size, param.align, param.mutable) if isinstance(param, PointerParam) else param.kind
