"""What a caller must know to launch a kernel: its parameters, its shared memory, its launch bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxdsl.record import dataclass, field


@dataclass(frozen=True)
class ScalarParam:
    """dtype: Mojo's name in lower case (``int32``, ``float32``, ``bool``, ``bfloat16``, ``int`` is int64)."""

    name: str
    dtype: str

    @property
    def kind(self) -> str:
        return "scalar"


@dataclass(frozen=True)
class PointerParam:
    """dtype of the elements, or the struct's name; ``size`` in bytes of one element; ``align`` in bytes."""

    name: str
    dtype: str
    size: int
    align: int
    mutable: bool
    space: str = "global"

    @property
    def kind(self) -> str:
        return "pointer"


@dataclass(frozen=True)
class TensorBox:
    """What one tensor copy of the kernel moves: ``rows`` rows of ``cols`` elements in shared memory.

    dtype: of the elements, Mojo's name in lower case; ``size`` in bytes of one. rank: dimensions of the tensor.
    swizzles: those that lay the rows as the kernel wants them, by ``ptxdsl.TensorMap``'s names, the tile's own first.
    combines: the copy computes with the elements.
    """

    rank: int
    rows: int
    cols: int
    dtype: str
    size: int
    swizzles: tuple[str, ...]
    combines: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """A map's ``box`` that is such a one."""
        return ((1,) * (self.rank - 2) + (self.rows, self.cols))[-self.rank :]


@dataclass(frozen=True)
class TensorMapParam:
    """A 128-byte CUtensorMap by value (``__grid_constant__``), 64-byte aligned.

    ranks: the dimensions that the kernel's copies give coordinates for. boxes: what they move, as far as it is known at
    compile time; the map's box must be one of them.
    """

    name: str
    ranks: tuple[int, ...] = ()
    boxes: tuple[TensorBox, ...] = ()

    @property
    def needs_form(self) -> bool:
        """Whether there are maps that the kernel cannot take."""
        return bool(self.ranks or self.boxes)

    @property
    def kind(self) -> str:
        return "tensormap"


@dataclass(frozen=True)
class StructParam:
    """A register-passable struct: its scalar and pointer leaves follow one another as parameters of their own."""

    name: str
    type: str
    fields: tuple[Param, ...]

    @property
    def kind(self) -> str:
        return "struct"


@dataclass(frozen=True)
class BytesParam:
    """A struct by value of which its size and alignment alone are known: one in PTX of another compiler."""

    name: str
    size: int
    align: int

    @property
    def kind(self) -> str:
        return "bytes"


Param = ScalarParam | PointerParam | TensorMapParam | StructParam | BytesParam


@dataclass(frozen=True)
class KernelSignature:
    """name: the PTX symbol. shared_bytes: static. dynamic_shared: whether ``external_memory`` is used. dynamic_bytes:
    as many as the kernel says it uses of it (``dynamic_shared[bytes]``), None where it does not say.

    cluster: the compile-time cluster shape or None. threads: the exact block size (``.reqntid``) or None; max_threads:
    its upper bound (``.maxntid``) or None. thread_count: of a block, in whatever shape, where operations of the kernel
    say it. min_blocks, max_registers: launch bounds.
    """

    name: str
    params: tuple[Param, ...] = ()
    shared_bytes: int = 0
    dynamic_shared: bool = False
    dynamic_bytes: int | None = None
    cluster: tuple[int, int, int] | None = None
    threads: tuple[int, int, int] | None = None
    max_threads: tuple[int, int, int] | None = None
    thread_count: int | None = None
    min_blocks: int | None = None
    max_registers: int | None = None
    wait: str | None = None
    ring_unroll: bool = True
    source_name: str = ""
    constants: tuple[tuple[str, str], ...] = field(default=())

    @property
    def block(self) -> tuple[int, int, int] | None:
        """The block of a launch that gives none."""
        return self.threads or (None if self.thread_count is None else (self.thread_count, 1, 1))

    @property
    def leaves(self) -> tuple[str, ...]:
        """What each parameter of the PTX is called in the text: a struct's fields are ``name.field``."""
        return tuple(path for path, _ in leaves(self.params))


def leaves(params: Iterable[Param], path: str = "") -> Iterator[tuple[str, Param]]:
    """The parameters that the PTX has, with their names in the text: of a struct its fields."""
    for param in params:
        if isinstance(param, StructParam):
            yield from leaves(param.fields, f"{path}{param.name}.")
        else:
            yield path + param.name, param
