"""``printf`` in Python: C's conversions, over a buffer of arguments as device code lays it out.

Source: C11, 7.21.6.1 ``fprintf``; what it leaves open (``%p``, the digits of ``%a``) is as the GNU library has it, on
whose host the card's driver formats.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable

LONGEST = 1 << 16  # characters of one %s, and width and precision

_DIRECTIVE = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d*))?(hh|h|ll|l|j|z|t|L)?([diuoxXfFeEgGaAcspn%])")
_LONG = ("l", "ll", "j", "z", "t")
_HEX_DIGITS = 13  # of a double's fraction

Reader = Callable[[int, int], bytes]  # (offset in the argument buffer, size) -> bytes
TextReader = Callable[[int], str]


def format_text(template: str, read: Reader, text_at: TextReader) -> str:
    """``printf`` of a format and a buffer in which each argument is aligned to its size."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at = -(-at // size) * size
        data = read(at, size)
        at += size
        return data

    def number(given: str | None) -> int | None:
        if given is None:
            return None
        value = int.from_bytes(take(4), "little", signed=True) if given == "*" else int(given[:9] or "0")
        return max(-LONGEST, min(value, LONGEST))

    def one(found: re.Match[str]) -> str:
        flags, width_text, precision_text, length, kind = found.groups()
        if kind == "%":
            return "%"
        width, precision = number(width_text) or 0, number(precision_text)
        if precision is not None and precision < 0:
            precision = None
        if width < 0:
            flags, width = flags + "-", -width
        prefix, zeros = "", False
        if kind in "diuoxX":
            size = {"hh": 1, "h": 2}.get(length or "", 8 if length in _LONG else 4)
            value = int.from_bytes(take(max(size, 4))[:size], "little", signed=kind in "di")
            prefix, text = _integer(value, kind, flags, precision)
            zeros = precision is None
        elif kind in "fFeEgGaA":
            real = struct.unpack("<d", take(8))[0]
            prefix, text = _real(real, kind, flags, precision)
            zeros = math.isfinite(real)
        elif kind == "c":
            text = chr(take(4)[0])
        else:
            address = int.from_bytes(take(8), "little")
            if kind == "n":  # its argument is passed over
                return ""
            text = f"{address:#x}" if kind == "p" else text_at(address)[:precision]
        room = width - len(prefix) - len(text)
        if room <= 0:
            return prefix + text
        if "-" in flags:
            return prefix + text + " " * room
        return prefix + "0" * room + text if zeros and "0" in flags else " " * room + prefix + text

    return _DIRECTIVE.sub(one, template)


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(value: int, kind: str, flags: str, precision: int | None) -> tuple[str, str]:
    """Sign or base, and digits."""
    prefix = _sign(value < 0, flags) if kind in "di" else ""
    digits = format(abs(value), kind if kind in "oxX" else "d")
    if precision is not None:
        digits = digits.rjust(precision, "0") if value or precision else ""
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and kind in "xX" and value:
        prefix = "0" + kind
    return prefix, digits


def _real(value: float, kind: str, flags: str, precision: int | None) -> tuple[str, str]:
    """Sign (and ``0x``), and the magnitude."""
    sign = _sign(math.copysign(1, value) < 0, flags)
    if kind in "aA" and math.isfinite(value):
        base, text = "0x", _hexadecimal(abs(value), precision, "#" in flags)
    else:
        python = {"a": "f", "A": "F"}.get(kind, kind)
        base, text = "", f"%{'#' * ('#' in flags)}.{6 if precision is None else precision}{python}" % abs(value)
    return (sign + base.upper(), text.upper()) if kind.isupper() else (sign + base, text)


def _hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """``1.8p+0`` of a finite magnitude: with as many digits as it needs, or rounded to nearest even."""
    head, _, rest = value.hex().removeprefix("0x").partition(".")
    fraction, _, exponent = rest.partition("p")
    fraction = fraction.ljust(_HEX_DIGITS, "0")
    if precision is None:
        fraction = fraction.rstrip("0")
    elif precision >= _HEX_DIGITS:
        fraction = fraction.ljust(precision, "0")
    else:
        drop = 4 * (_HEX_DIGITS - precision)
        whole = int(head + fraction, 16)
        whole = (whole + (1 << drop - 1) - 1 + (whole >> drop & 1)) >> drop
        digits = format(whole, "x").rjust(precision + 1, "0")
        head, fraction = digits[: len(digits) - precision], digits[len(digits) - precision :]
    return f"{head}{'.' if fraction or point else ''}{fraction}p{exponent}"
