"""What a product of tcgen05 is, from its row's name, its compile-time parameters and its instruction descriptor.

Source: PTX ISA, "Instruction descriptor", "Zero-Column Mask Descriptor", "Data Path Layout Organization".
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxdsl.record import dataclass

K_BYTES, K96_BYTES = 32, 48  # of a row of A, as it is stored
_NON_ZERO_MASK = 1 << 39
_MAXIMUM_SHIFTS = (0, 8, 16, 32)


@dataclass(frozen=True)
class ProductForm:
    """m, n: of D, of both CTAs. scale_ids: of A and B, the first byte of a word of factors. maximum_shift: columns that
    a stationary B may have more."""

    kind: str
    cta_group: int
    m: int
    n: int
    a_in_tensor_memory: bool
    a_mn_major: bool
    b_mn_major: bool
    sparse: bool
    stationary: bool
    scaled: bool
    k96: bool
    shifts_a: bool
    scale_ids: tuple[int, int]
    maximum_shift: int

    @property
    def element(self) -> int:
        """Bytes of one of A and B; two of 4 bits without padding count as one."""
        return {"f16": 2, "tf32": 4}.get(self.kind, 1)

    @property
    def row_bytes(self) -> int:
        """Of A, as it is stored."""
        return K96_BYTES if self.k96 else K_BYTES

    @property
    def rows(self) -> int:
        """Of A and D in a CTA."""
        return self.m // self.cta_group

    @property
    def columns(self) -> int:
        """Of tensor memory that D takes."""
        if self.stationary:
            return self.n // (128 // self.m)
        return self.n // 2 if self.cta_group == 2 and self.m == 128 and not self.sparse else self.n


def product_form(name: str, attrs: Mapping[str, object], instruction: int) -> ProductForm:
    """name, attrs: of a row of ``intrinsics/`` and its compile-time parameters. instruction: its descriptor."""
    scaled = "_scaled" in name
    return ProductForm(
        kind=str(attrs["kind"]),
        cta_group=int(str(attrs["cta_group"])),
        m=(instruction >> 27 & 3) * 128 if scaled else (instruction >> 24 & 31) * 16,
        n=(instruction >> 17 & 63) * 8,
        a_in_tensor_memory="_tensor" in name,
        a_mn_major=bool(instruction >> 15 & 1),
        b_mn_major=bool(instruction >> 16 & 1),
        sparse="_sparse" in name,
        stationary="_stationary" in name,
        scaled=scaled,
        k96="_k96" in name,
        shifts_a=".ashift" in str(attrs["form"]),
        scale_ids=(instruction >> 29 & 3, instruction >> 4 & 3),
        maximum_shift=0 if scaled else _MAXIMUM_SHIFTS[instruction >> 30 & 3],
    )


def column_shift(mask: int | None, form: ProductForm) -> int:
    """How many columns of B a mask of columns leaves out at its start; mask: None where it is not known."""
    if mask is None:
        return form.maximum_shift
    return mask >> 56 & 63 if mask & _NON_ZERO_MASK else 0
