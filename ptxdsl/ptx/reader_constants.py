"""Numbers and constant expressions of PTX.

Source: PTX ISA, "Constants": integers are 64 bits wide, signed unless marked ``U`` or too large; ``0f``/``0d`` give the
bits of a float; expressions have C's operators and precedence.
"""

from __future__ import annotations

import re
import struct

from ptxdsl.ptx.module import Immediate
from ptxdsl.ptx.reader_text import Refused

WARP_SIZE = 32
_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_FLOAT_BITS = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<bits>0[fF][0-9a-fA-F]{8}(?!\w)|0[dD][0-9a-fA-F]{16}(?!\w))
    | (?P<real>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
    | (?P<int>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)(?![\w.])
    | (?P<warp>WARP_SZ)\b
    | (?P<cast>\(\s*\.[su]64\s*\))
    | (?P<op><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:()])
    )""",
    re.VERBOSE | re.ASCII,
)
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_MAX_NESTING = 50
_MAX_LENGTH = 4000
_M64 = (1 << 64) - 1

# A value under way: a float, or an integer with its signedness.
_Value = tuple[int, bool] | float


def immediate(text: str) -> Immediate:
    """A number or constant expression as an operand. Raises Refused."""
    if _DECIMAL.fullmatch(text):
        return Immediate(int(text))
    bits = _FLOAT_BITS.fullmatch(text)
    if bits is not None:
        return Immediate(int(bits[1], 16), "f32") if bits[1] else Immediate(int(bits[2], 16), "f64")
    value = _Expression(text).value()
    if isinstance(value, float):
        return Immediate(int.from_bytes(struct.pack("<d", value), "little"), "f64")
    return Immediate(value[0])


def integer(text: str) -> int:
    """An integer number or constant expression. Raises Refused."""
    value = immediate(text)
    if value.kind != "int":
        raise Refused("E0814", "expected an integer", text)
    return value.value


def initial_bytes(text: str, type: str, width: int) -> bytes:
    """A number as the initial value of an element of this type and width (bytes). Raises Refused."""
    value = immediate(text)
    if type in ("f32", "f64"):
        if value.kind == "int":
            raise Refused("E0814", f"an initial value of type .{type} is written as a floating-point constant", text)
        if value.kind == type:
            return value.value.to_bytes(width, "little")
        if value.kind == "f64":
            return _f32_bytes(struct.unpack("<d", value.value.to_bytes(8, "little"))[0])
        single = struct.unpack("<f", value.value.to_bytes(4, "little"))[0]
        return struct.pack("<d", single)
    if value.kind != "int":
        raise Refused("E0814", f"an initial value of type .{type} is written as an integer", text)
    return (value.value & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _f32_bytes(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))


class _Expression:
    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.tokens: list[tuple[str, str]] = []
        if len(text) > _MAX_LENGTH:
            raise Refused("E0814", f"a constant expression of more than {_MAX_LENGTH} characters", text[:40])
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self.wrong()
            self.tokens.append((match.lastgroup or "", match[0].strip()))
            at = match.end()
        self.tokens.append(("end", ""))
        self.at = 0

    def wrong(self) -> Refused:
        return Refused("E0814", "this is neither a number nor a constant expression", self.text.strip())

    def value(self) -> _Value:
        result = self.conditional()
        if self.tokens[self.at][0] != "end":
            raise self.wrong()
        return result

    def take(self, text: str) -> bool:
        if self.tokens[self.at][1] == text:
            self.at += 1
            return True
        return False

    def conditional(self) -> _Value:
        self.depth += 1
        if self.depth > _MAX_NESTING:
            raise Refused("E0814", "a constant expression nested too deeply", self.text[:40].strip())
        condition = self.binary(1)
        if self.take("?"):
            first = self.conditional()
            if not self.take(":"):
                raise self.wrong()
            second = self.conditional()
            condition = first if _number(condition) else second
        self.depth -= 1
        return condition

    def binary(self, least: int) -> _Value:
        left = self.unary()
        while True:
            kind, operator = self.tokens[self.at]
            precedence = _PRECEDENCE.get(operator, 0) if kind == "op" else 0
            if precedence < least:
                return left
            self.at += 1
            left = self.apply(operator, left, self.binary(precedence + 1))

    def unary(self) -> _Value:
        signs = []  # a loop, not a recursion: their number is the text's
        while self.tokens[self.at][0] == "cast" or self.tokens[self.at][1] in ("-", "+", "~", "!"):
            signs.append(self.tokens[self.at][1])
            self.at += 1
        kind, text = self.tokens[self.at]
        self.at += 1
        value: _Value
        if kind == "int":
            value = self.number(text)
        elif kind == "bits":
            size = "<f" if text[1] in "fF" else "<d"
            value = float(struct.unpack(size, bytes.fromhex(text[2:])[::-1])[0])
        elif kind == "real":
            value = float(text)
        elif kind == "warp":
            value = (WARP_SIZE, True)
        elif text == "(":
            value = self.conditional()
            if not self.take(")"):
                raise self.wrong()
        else:
            raise self.wrong()
        for sign in reversed(signs):
            value = self.signed(sign, value)
        return value

    def number(self, text: str) -> _Value:
        unsigned = text.endswith("U")
        digits = text.rstrip("U")
        if len(digits) > 70:
            value = 1 << 64
        elif digits[:2] in ("0x", "0X"):
            value = int(digits, 16)
        elif digits[:2] in ("0b", "0B"):
            value = int(digits, 2)
        elif digits[0] == "0" and len(digits) > 1:
            if "8" in digits or "9" in digits:
                raise Refused("E0814", "a number that starts with 0 is octal", text)
            value = int(digits, 8)
        else:
            value = int(digits)
        if value > _M64:
            raise Refused("E0814", "this integer has more than 64 bits", text)
        return value, not unsigned and value < 1 << 63

    def signed(self, sign: str, value: _Value) -> _Value:
        if isinstance(value, float):
            if sign in "+-":
                return -value if sign == "-" else value
            raise self.wrong()
        if sign[0] == "(":
            return _wrap(value[0], ".s" in sign)
        if sign == "!":
            return int(value[0] == 0), True
        if sign == "+":
            return value
        return _wrap(-value[0] if sign == "-" else ~value[0], value[1])

    def apply(self, operator: str, left: _Value, right: _Value) -> _Value:
        if isinstance(left, float) or isinstance(right, float):
            return self.apply_float(operator, _number(left), _number(right))
        a, b = left[0], right[0]
        signed = left[1] and right[1]
        if operator in ("<<", ">>"):
            shift = min(b & _M64, 64)
            return _wrap(a << shift if operator == "<<" else a >> shift, left[1])
        if not signed:
            a, b = a & _M64, b & _M64
        match operator:
            case "+":
                value = a + b
            case "-":
                value = a - b
            case "*":
                value = a * b
            case "/" | "%":
                if b == 0:
                    raise Refused("E0814", "division by zero in a constant expression", self.text.strip())
                quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
                value = quotient if operator == "/" else a - quotient * b
            case "&":
                value = a & b
            case "|":
                value = a | b
            case "^":
                value = a ^ b
            case _:
                return int(_compare(operator, a, b)), True
        return _wrap(value, signed)

    def apply_float(self, operator: str, a: float, b: float) -> _Value:
        match operator:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
            case "/":
                if b == 0:
                    raise Refused("E0814", "division by zero in a constant expression", self.text.strip())
                return a / b
            case "%" | "&" | "|" | "^" | "<<" | ">>":
                raise self.wrong()
            case _:
                return int(_compare(operator, a, b)), True


def _number(value: _Value) -> float:
    return value if isinstance(value, float) else value[0]


def _wrap(value: int, signed: bool) -> _Value:
    value &= _M64
    return (value - (1 << 64) if signed and value >> 63 else value), signed


def _compare(operator: str, a: float, b: float) -> bool:
    match operator:
        case "&&":
            return bool(a) and bool(b)
        case "||":
            return bool(a) or bool(b)
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
    return a >= b
