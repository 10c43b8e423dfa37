"""The descriptors of ``tcgen05``: what a 32-bit instruction descriptor and a 64-bit shared-memory descriptor say.

Everything here is a function of numbers; what a descriptor must not say is a ``Fault``.

Source: PTX ISA, "Instruction descriptor" (tables of ``.kind::f16`` …, ``.kind::mxf8f6f4``, ``.kind::mxf4``), "Shared
memory descriptor", "Matrix Shape", "Valid Combinations of Type-Size, Major-ness and Swizzling", "Transpose and Negate
operations", "Valid combinations of scale_vectorsize with types and MMA-Kind".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ptxdsl.record import dataclass, field
from ptxdsl.sim.host import Fault

BAD_SHARED, BAD_INSTRUCTION = "E1163", "E1164"

Fields = tuple[tuple[str, int, int], ...]  # name, lowest bit, bits; the bits that no field names are reserved: 0

# "Instruction descriptor format for .kind::tf32, .kind::f16, .kind::f8f6f4 and .kind::i8"
PLAIN_FIELDS: Fields = (
    ("sparsity_selector", 0, 2),
    ("sparse", 2, 1),
    ("saturate", 3, 1),
    ("d_type", 4, 2),
    ("a_type", 7, 3),
    ("b_type", 10, 3),
    ("negate_a", 13, 1),
    ("negate_b", 14, 1),
    ("transpose_a", 15, 1),
    ("transpose_b", 16, 1),
    ("n", 17, 6),
    ("m", 24, 5),
    ("max_shift", 30, 2),
)
# "Instruction descriptor format for .kind::mxf8f6f4"
MX_FIELDS: Fields = (
    ("sparse", 2, 1),
    ("scale_b_id", 4, 2),
    ("a_type", 7, 3),
    ("b_type", 10, 3),
    ("negate_a", 13, 1),
    ("negate_b", 14, 1),
    ("transpose_a", 15, 1),
    ("transpose_b", 16, 1),
    ("n", 17, 6),
    ("scale_type", 23, 1),
    ("m", 27, 2),
    ("scale_a_id", 29, 2),
)
# "Instruction descriptor format for .kind::mxf4 and .kind::mxf4nvf4"
MXF4_FIELDS: Fields = (
    *(("b_type", 10, 2) if f[0] == "b_type" else f for f in MX_FIELDS),
    ("k_size", 31, 1),
)

_F8F6F4 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_SCALE_TYPES = {0: "ue4m3", 1: "ue8m0"}


@dataclass(frozen=True)
class Kind:
    """One ``.kind``. k: elements of a dense row of A. m_unit, n_unit: what the descriptor's M and N count.

    scales: of each ``.scale_vec`` (its number) the scale types that it may have; scale_default 0: must be written.
    """

    fields: Fields
    types: dict[int, str]
    d_types: dict[int, str]
    k: int
    m_unit: int = 16
    n_unit: int = 8
    scales: dict[int, tuple[str, ...]] = field(default_factory=dict)
    scale_default: int = 0

    @property
    def block_scaled(self) -> bool:
        return bool(self.scales)


_F32 = {1: "f32"}
KINDS: dict[str, Kind] = {
    "f16": Kind(PLAIN_FIELDS, {0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 16),
    "tf32": Kind(PLAIN_FIELDS, {2: "tf32"}, _F32, 8),
    "f8f6f4": Kind(PLAIN_FIELDS, _F8F6F4, {0: "f16", 1: "f32"}, 32),
    "i8": Kind(PLAIN_FIELDS, {0: "u8", 1: "s8"}, {2: "s32"}, 32),
    "mxf8f6f4": Kind(MX_FIELDS, _F8F6F4, _F32, 32, 128, 8, {1: ("ue8m0",)}, 1),
    "mxf4": Kind(MXF4_FIELDS, {1: "e2m1"}, _F32, 64, 128, 8, {2: ("ue8m0",)}, 2),
    "mxf4nvf4": Kind(MXF4_FIELDS, {1: "e2m1"}, _F32, 64, 128, 8, {2: ("ue8m0",), 4: ("ue8m0", "ue4m3")}),
}


@dataclass(frozen=True)
class Shapes:
    """The M of a variant, and its N: multiples of ``step`` up to 256, or ``ns`` where they are listed."""

    ms: tuple[int, ...]
    step: int = 0
    ns: tuple[int, ...] = ()

    @property
    def all_ns(self) -> tuple[int, ...]:
        return self.ns or tuple(range(self.step, 257, self.step))


_I8_NS = (8, 16, 24, *range(32, 257, 16))
_ONE, _PAIR = Shapes((64, 128), 8), Shapes((128, 256), 16)
_WS = Shapes((32, 64, 128), ns=(64, 128, 256))
_PLAIN = {(1, False): _ONE, (2, False): _PAIR, (1, True): _WS}
_SCALED = {(1, False): Shapes((128,), 8), (2, False): _PAIR}
# "Various combinations of .kind and shapes", of a dense A; a sparse one has a few less:
# kind -> (cta_group, .ws) -> shapes. What is missing is invalid.
SHAPES: dict[str, dict[tuple[int, bool], Shapes]] = {
    "f16": _PLAIN,
    "tf32": _PLAIN,
    "f8f6f4": _PLAIN,
    "i8": {
        (1, False): Shapes((64, 128), ns=_I8_NS),
        (2, False): Shapes((128, 256), 32),
        (1, True): _WS,
    },
    "mxf8f6f4": _SCALED,
    "mxf4": _SCALED,
    "mxf4nvf4": _SCALED,
}

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "u8": 8, "s8": 8, "e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


@dataclass(frozen=True)
class InstructionDescriptor:
    """A decoded instruction descriptor. k: of the whole matrix A, sparse or dense. scale ids: byte of a 32-bit word."""

    kind: str
    m: int
    n: int
    k: int
    a_type: str
    b_type: str
    d_type: str
    sparsity_selector: int
    saturate: bool
    negate_a: bool
    negate_b: bool
    transpose_a: bool
    transpose_b: bool
    scale_type: str
    scale_a_id: int
    scale_b_id: int


@lru_cache(1024)
def decode_instruction(
    value: int, kind: str, *, cta_group: int, ws: bool, sparse: bool = False
) -> InstructionDescriptor:
    """The descriptor of an instruction with these qualifiers. Raises Fault."""
    row = KINDS[kind]
    raw = {name: value >> low & (1 << size) - 1 for name, low, size in row.fields}
    known = sum((1 << size) - 1 << low for _, low, size in row.fields)

    def wrong(text: str, help: str | None = None) -> Fault:
        return Fault(BAD_INSTRUCTION, f"instruction descriptor {value:#010x} of .kind::{kind}: {text}", help)

    if value & ~known:
        raise wrong(f"the reserved bits {value & ~known:#010x} are set")
    if bool(raw["sparse"]) != sparse:
        said = "sparse" if raw["sparse"] else "dense"
        raise wrong(f"it says that A is {said}, the instruction is tcgen05.mma{'.ws' * ws}{'.sp' * sparse}")

    def of(name: str, table: dict[int, str], what: str) -> str:
        if raw[name] not in table:
            known_types = ", ".join(f"{code} {text}" for code, text in table.items())
            raise wrong(f"{raw[name]} is not a type of {what}", f"the types of {what} are: {known_types}")
        return table[raw[name]]

    a_type, b_type = of("a_type", row.types, "A"), of("b_type", row.types, "B")
    d_type = of("d_type", row.d_types, "D") if "d_type" in raw else "f32"
    m, n = raw["m"] * row.m_unit, raw["n"] * row.n_unit
    k = row.k
    if raw.get("k_size"):
        k = 96
        if sparse or ws or (cta_group, m) not in ((1, 128), (2, 256)) or n % 16:
            raise wrong(
                f"K = 96 with M = {m}, N = {n} and .cta_group::{cta_group}{', sparse' * sparse}",
                "A is dense then, M is 128, of a pair 256, and N a multiple of 16",
            )
    _check_types(kind, raw, (a_type, b_type, d_type), ws, wrong)
    _check_shape(kind, m, n, cta_group, ws, wrong)
    if sparse:
        _check_sparse(row, m, n, cta_group, ws, wrong)
    _check_transposed(raw, a_type, b_type, n, cta_group, wrong)
    return InstructionDescriptor(
        kind=kind,
        m=m,
        n=n,
        k=2 * k if sparse else k,
        a_type=a_type,
        b_type=b_type,
        d_type=d_type,
        sparsity_selector=raw.get("sparsity_selector", 0),
        saturate=bool(raw.get("saturate")),
        negate_a=bool(raw["negate_a"]),
        negate_b=bool(raw["negate_b"]),
        transpose_a=bool(raw["transpose_a"]),
        transpose_b=bool(raw["transpose_b"]),
        scale_type=_SCALE_TYPES[raw["scale_type"]] if "scale_type" in raw else "",
        scale_a_id=raw.get("scale_a_id", 0),
        scale_b_id=raw.get("scale_b_id", 0),
    )


def _check_types(
    kind: str, raw: dict[str, int], types: tuple[str, str, str], ws: bool, wrong: Callable[..., Fault]
) -> None:
    """What types, signs and saturation go together. types: of A, B and D."""
    a_type, b_type, d_type = types
    if d_type == "f16" and kind == "f16" and (a_type, b_type) != ("f16", "f16"):
        raise wrong(f"D of f16 with A of {a_type} and B of {b_type}", "with D of f16, A and B are f16 too")
    if kind == "f16" and a_type != b_type:  # not in the ISA; a B200 takes it for an illegal instruction
        raise wrong(f"A of {a_type} and B of {b_type}", "A and B have the same type; the card does not mix these two")
    if kind == "i8" and (raw["negate_a"] or raw["negate_b"]):
        raise wrong("integers cannot be negated")
    if raw.get("saturate") and kind != "i8":
        raise wrong("only integers saturate")
    if raw.get("max_shift") and not ws:
        raise wrong("a maximum shift is for tcgen05.mma.ws alone")


def _check_sparse(row: Kind, m: int, n: int, cta_group: int, ws: bool, wrong: Callable[..., Fault]) -> None:
    """The shapes that a sparse A has less of."""
    if ws and n == 256:
        raise wrong("N = 256 with a sparse A and .ws", "N is 64 or 128 then")
    if row.block_scaled and m != 128 * cta_group:
        help = f"M is {128 * cta_group} with scale factors and .cta_group::{cta_group}"
        raise wrong(f"M = {m} with a sparse A", help)


def _check_transposed(
    raw: dict[str, int], a_type: str, b_type: str, n: int, cta_group: int, wrong: Callable[..., Fault]
) -> None:
    for operand, type, transposed in (("A", a_type, raw["transpose_a"]), ("B", b_type, raw["transpose_b"])):
        if transposed and BITS[type] < 8:
            raise wrong(f"{operand} of {type} cannot be transposed", "elements of 4 and 6 bits are K-major")
    if raw["transpose_b"] and BITS[b_type] == 8 and n % (16 * cta_group):
        raise wrong(f"N = {n} with a transposed B of 8 bits", f"N then is a multiple of {16 * cta_group}")


def _check_shape(kind: str, m: int, n: int, cta_group: int, ws: bool, wrong: Callable[..., Fault]) -> None:
    shapes = SHAPES[kind].get((cta_group, ws))
    if shapes is None:
        raise wrong(f"there is no tcgen05.mma{'.ws' * ws} of this kind with .cta_group::{cta_group}")
    if m not in shapes.ms:
        sizes = ", ".join(map(str, shapes.ms))
        raise wrong(f"M = {m}", f"M is one of {sizes} with .cta_group::{cta_group}{' and .ws' * ws}")
    if n not in shapes.all_ns:
        sizes = f"one of {', '.join(map(str, shapes.ns))}" if shapes.ns else f"a multiple of {shapes.step} up to 256"
        raise wrong(f"N = {n}", f"N is {sizes} with .cta_group::{cta_group}{' and .ws' * ws}")


def check_scales(descriptor: InstructionDescriptor, scale_vec: int) -> None:
    """Whether scale type and scale ids fit ``.scale_vec::NX``. Raises Fault.

    With K = 96 factors go on in the next word: three of them begin at any byte, six at byte 0 or 2.
    """
    d = descriptor
    allowed = KINDS[d.kind].scales.get(scale_vec)
    if allowed is None:
        raise Fault(BAD_INSTRUCTION, f".scale_vec::{scale_vec}X does not exist with .kind::{d.kind}")
    if d.scale_type not in allowed:
        raise Fault(
            BAD_INSTRUCTION,
            f"scale factors of {d.scale_type} with .kind::{d.kind} and .scale_vec::{scale_vec}X",
            f"they are {' or '.join(allowed)} here",
        )
    for operand, id in (("A", d.scale_a_id), ("B", d.scale_b_id)):
        if d.k == 96:
            if scale_vec == 4 and id % 2:
                text = f"scale factor id {id} of {operand} with .block16 and K = 96"
                raise Fault(BAD_INSTRUCTION, text, "the id is 0 or 2")
        elif id % scale_vec or id + scale_vec > 4:
            raise Fault(
                BAD_INSTRUCTION,
                f"scale factor id {id} of {operand} with .scale_vec::{scale_vec}X",
                f"{scale_vec} bytes of a word are taken: the id is {' or '.join(map(str, range(0, 4, scale_vec)))}",
            )


NO_SWIZZLE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 = "none", "32B", "64B", "128B"
SWIZZLE_128_BASE32 = "128B with 32B atoms"
# "Shared memory descriptor layout", bits 61-63
SWIZZLES = {0: NO_SWIZZLE, 1: SWIZZLE_128_BASE32, 2: SWIZZLE_128, 4: SWIZZLE_64, 6: SWIZZLE_32}
_VERSION = 0b001
# name, lowest bit, bits; addresses and offsets in units of 16 bytes
SHARED_FIELDS: Fields = (
    ("address", 0, 14),
    ("leading", 16, 14),
    ("stride", 32, 14),
    ("version", 46, 3),
    ("base", 49, 3),
    ("absolute", 52, 1),
    ("swizzle", 61, 3),
)


@dataclass(frozen=True)
class SharedDescriptor:
    """address: offset in the CTA's shared memory. leading, stride: bytes.

    absolute: leading is no stride but where the rest of rows lies that go over the end of 128 bytes ("Absolute address
    mode for K dimension being 48B").
    """

    address: int
    leading: int
    stride: int
    swizzle: str
    absolute: bool = False


def decode_shared(value: int, what: str) -> SharedDescriptor:
    """what: the operand, for messages (``A``, ``B``, ``the source``). Raises Fault."""
    raw = {name: value >> low & (1 << size) - 1 for name, low, size in SHARED_FIELDS}
    known = sum((1 << size) - 1 << low for _, low, size in SHARED_FIELDS)

    def wrong(text: str, help: str | None = None) -> Fault:
        return Fault(BAD_SHARED, f"shared-memory descriptor {value:#018x} of {what}: {text}", help)

    if raw["version"] != _VERSION:
        raise wrong(
            f"bits 46-48 are {raw['version']:#05b}, not 0b001",
            "this may be a descriptor of wgmma; tcgen05 has 0b001 in bits 46-48 and the swizzling mode in bits 61-63",
        )
    if value & ~known:
        raise wrong(f"the reserved bits {value & ~known:#018x} are set")
    if raw["swizzle"] not in SWIZZLES:
        raise wrong(f"swizzling mode {raw['swizzle']} does not exist", "the modes are 0, 1, 2, 4 and 6")
    swizzle = SWIZZLES[raw["swizzle"]]
    if raw["base"] and swizzle != NO_SWIZZLE:
        raise wrong(
            f"a matrix base offset (bits 49-51) of {raw['base']} is not supported by the simulator",
            "what it does is not in the PTX ISA in words; align the matrix to the swizzling pattern, 1024 bytes for "
            "128-byte swizzling",
        )
    return SharedDescriptor(
        address=raw["address"] << 4,
        leading=raw["leading"] << 4,
        stride=raw["stride"] << 4,
        swizzle=swizzle,
        absolute=bool(raw["absolute"]),
    )


def check_long_rows(descriptor: SharedDescriptor, k: int, what: str) -> None:
    """Rows of 48 bytes (K = 96) say where they go on; no others do. Raises Fault."""
    if descriptor.absolute != (k == 96) or (descriptor.absolute and descriptor.swizzle != SWIZZLE_128):
        leading = "absolute" if descriptor.absolute else "relative"
        raise Fault(
            BAD_SHARED,
            f"{what} with K = {k}, a leading dimension that is {leading} (bit 52), swizzling mode {descriptor.swizzle}",
            "with K = 96, and there alone, it is an absolute address, and the swizzling mode 128B",
        )


def check_swizzle(descriptor: SharedDescriptor, bits: int, transposed: bool, what: str) -> None:
    """The table "Valid Combinations of Type-Size, Major-ness and Swizzling". Raises Fault."""
    atoms_of_32 = descriptor.swizzle == SWIZZLE_128_BASE32
    if transposed and (bits == 32) != atoms_of_32:
        needs = "128-byte swizzling with atoms of 32 bytes" if bits == 32 else "another swizzling mode"
        raise Fault(
            BAD_SHARED,
            f"{what} is transposed, of {bits}-bit elements, and its swizzling mode is {descriptor.swizzle}",
            f"transposed elements of {bits} bits need {needs}",
        )
    if atoms_of_32 and not transposed:
        raise Fault(
            BAD_SHARED,
            f"{what} is K-major with 128-byte swizzling of 32-byte atoms, which the simulator does not support",
            "the PTX ISA gives no layout for it; use 128-byte swizzling",
        )
