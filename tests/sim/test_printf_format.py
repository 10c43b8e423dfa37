"""``printf`` of device code beside the C library's own, and what that has no say in: the buffer of arguments."""

from __future__ import annotations

import ctypes
import math
import struct

import pytest

from ptxdsl.sim.machine.printf_format import format_text


def formatted(template: str, *arguments: object) -> str:
    """The buffer holds each argument aligned to its size: int, double, 8-byte integers as ``("q", value)``, text."""
    buffer, strings = b"", {}
    for argument in arguments:
        if isinstance(argument, str):
            strings[0x100 + len(strings)] = argument
            packed = struct.pack("<Q", 0xFF + len(strings))
        elif isinstance(argument, tuple):
            packed = struct.pack("<" + argument[0], argument[1])
        elif isinstance(argument, float):
            packed = struct.pack("<d", argument)
        else:
            packed = struct.pack("<I", argument & 0xFFFFFFFF)  # type: ignore[operator]
        buffer += b"\0" * (-len(buffer) % len(packed)) + packed
    return format_text(template, lambda at, n: buffer[at : at + n], strings.__getitem__)


def in_c(template: str, *arguments: object) -> str:
    given = []
    for argument in arguments:
        if isinstance(argument, str):
            given.append(ctypes.c_char_p(argument.encode()))
        elif isinstance(argument, tuple):
            given.append(ctypes.c_longlong(argument[1]))
        else:
            given.append((ctypes.c_double if isinstance(argument, float) else ctypes.c_int)(argument))
    buffer = ctypes.create_string_buffer(1000)
    ctypes.CDLL(None).snprintf(buffer, ctypes.c_size_t(1000), template.encode(), *given)
    return buffer.value.decode()


INTEGERS = [f"%{flags}{size}{kind}" for flags in ("", "+", " ", "#", "-", "0", "#0", "-0", "+ ")
            for size in ("", "7", ".3", "7.3", ".0") for kind in "diuxXo"]  # fmt: skip
REALS = [f"%{flags}{size}{kind}" for flags in ("", "+", "#", "-", "0", "#0")
         for size in ("", "12", ".0", ".2", "12.3", "25.17") for kind in "feEgGaA"]  # fmt: skip


@pytest.mark.parametrize("template", INTEGERS)
def test_integers_as_in_c(template: str) -> None:
    for value in (0, 1, -1, 9, 200, -40000, 2**31 - 1, -(2**31)):
        assert formatted(template, value) == in_c(template, value), value


@pytest.mark.parametrize("template", REALS)
def test_reals_as_in_c(template: str) -> None:
    for value in (
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.345,
        0.1,
        1e100,
        123456789.0,
        5e-324,
        1 - 2**-53,
        1.96875,
        math.inf,
        math.nan,
    ):
        assert formatted(template, value) == in_c(template, value), value


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("%lld %llu %ld %llx", (("q", -5), ("q", 2**63 - 1), ("q", 7), ("q", -1))),
        ("%hd %hhu %hhd %hx", (65535, 257, 200, -1)),
        ("%s|%5s|%-5s|%.2s|%05s and %c%%|%3c", ("text", "ab", "ab", "abc", "ab", 65, 66)),
        ("%*d|%-*d|%.*f|%.*f", (6, 42, 6, 42, 1, 2.25, -1, 2.25)),
        ("%p", (("q", 4096),)),
    ],
)
def test_lengths_widths_and_texts_as_in_c(template: str, arguments: tuple[object, ...]) -> None:
    assert formatted(template, *arguments) == in_c(template, *arguments)


def test_arguments_are_aligned_and_n_is_passed_over() -> None:
    assert formatted("%d %f %n%d", 1, 2.0, ("q", 0x1000), 7) == "1 2.000000 7"


def test_a_width_is_bounded() -> None:
    assert len(formatted("%999999999999d", 1)) == 1 << 16
