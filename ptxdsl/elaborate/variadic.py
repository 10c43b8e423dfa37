"""``print`` and ``inlined_assembly``: builtins with any number of arguments."""

from __future__ import annotations

from ptxdsl import tir
from ptxdsl.diagnostics import counted
from ptxdsl.elaborate import types
from ptxdsl.elaborate.builtins import Builtins
from ptxdsl.elaborate.entities import (
    NONE_VALUE,
    ArrayValue,
    Comptime,
    Literal,
    Poison,
    Runtime,
    RValue,
    StructValue,
    TupleValue,
    Variadic,
)
from ptxdsl.elaborate.matching import Given
from ptxdsl.elaborate.parameters import Binding
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.types import PointerType, SimdType
from ptxdsl.elaborate.values import const, leaves
from ptxdsl.source import Span
from ptxdsl.syntax import ast

MAX_PRINTED = 32  # vprintf's limit of arguments


class Variadics(Builtins):
    """Calls of variadic builtins."""

    def call_variadic(self, function: Variadic, args: list[Given], span: Span) -> RValue:
        return self._print(args, span) if function.name == "print" else self._assembly(function, args, span)

    # -------------------------------------------------------------------------------------------------------- print

    def _print(self, args: list[Given], span: Span) -> RValue:
        """Values separated by ``sep``, then ``end``; one call of the device's printf."""
        sep, end, shown = " ", "\n", []
        for argument in args:
            if argument.name in ("sep", "end"):
                text = argument.value
                if not (isinstance(text, Comptime) and isinstance(text.value, str)):
                    raise self.fail(
                        "E0301",
                        f"`{argument.name}` is a string known at compile time",
                        argument.span,
                        help=f'write `{argument.name}=", "`',
                    )
                sep, end = (text.value, end) if argument.name == "sep" else (sep, text.value)
            elif argument.name is None:
                shown.append(argument)
            else:
                raise self.fail(
                    "E0323", f"`print` has no argument `{argument.name}`", argument.name_span,
                    help="the arguments by name are `sep` and `end`",
                )  # fmt: skip
        operands: list[tir.Value] = []
        pieces = [self._printed(a.value, operands, a.span) for a in shown]
        if len(operands) > MAX_PRINTED:
            raise self.fail("E0344", f"`print` of {len(operands)} values", span, help=f"at most {MAX_PRINTED} a call")
        self.emit("print", operands, [], span, format=_escaped(sep).join(pieces) + _escaped(end))
        return NONE_VALUE

    def _printed(self, value: RValue, operands: list[tir.Value], span: Span) -> str:
        """The printf format of a value; its promoted parts join the operands."""
        match value:
            case Comptime(type=types.STRING):
                return _escaped(value.value)
            case Comptime():
                return _escaped(str(value.value))
            case Literal() | Poison():
                value = self.materialize(value, span)
                return self._printed(value, operands, span) if isinstance(value, Runtime) else ""
            case ArrayValue() | TupleValue():
                return "[" + ", ".join(self._printed(v, operands, span) for v in value.items) + "]"
            case Runtime(type=PointerType()):
                operands.append(self.emit1("ptr.toint", [value.value], tir.I64, span))
                return "0x%llx"
            case Runtime(type=SimdType() as t) if t.width == 1:
                return self._printed_scalar(value, t, operands, span)
            case Runtime(type=SimdType() as t):
                lanes = [self.element(value, const(types.INT, i), span) for i in range(t.width)]
                return "[" + ", ".join(self._printed(v, operands, span) for v in lanes) + "]"
        help = "print its fields" if isinstance(value, StructValue) else None
        raise self.fail("E0345", f"a value of type {value.type} cannot be printed", span, help=help)

    def _printed_scalar(self, value: Runtime, t: SimdType, operands: list[tir.Value], span: Span) -> str:
        if t.dtype.kind == "float":
            wide = self.cast(value, types.FLOAT64.dtype, span)
            operands.append(wide.value)
            return "%g" if t.dtype.bits < 64 else "%.17g"
        if t.dtype.kind == "bool":
            words = [self.emit1("string", [], tir.ptr("generic"), span, text=word) for word in ("True", "False")]
            operands.append(self.emit1("select", [value.value, *words], tir.ptr("generic"), span))
            return "%s"
        wide = self.cast(value, (types.INT if t.dtype.signed else types.UINT64).dtype, span)
        operands.append(wide.value)
        return "%lld" if t.dtype.signed else "%llu"

    # ----------------------------------------------------------------------------------------------------- assembly

    def _assembly(self, function: Variadic, args: list[Given], span: Span) -> RValue:
        """``inlined_assembly["…", T, constraints="…", has_side_effect=True](…)``."""
        given = self._assembly_params(function, span)
        text, constraints = given["asm"], given["constraints"]
        result = given["result_type"]
        t = self.as_type(result, span)
        operands: list[tir.Value] = []
        for argument in args:
            operands.extend(leaves(self.materialize(argument.value, argument.span)))
        wanted = self._machine_types(t, span)
        assert isinstance(text, Comptime) and isinstance(constraints, Comptime)
        at = _span_of("constraints", function, span)
        self._check_constraints(constraints.value, len(wanted), len(operands), at)
        side = self.comptime_int(given["has_side_effect"], span)
        attrs = {"text": text.value, "constraints": constraints.value, "side_effects": bool(side)}
        return self._assemble_result(t, iter(self.emit("asm", operands, wanted, span, **attrs)))

    def _assembly_params(self, function: Variadic, span: Span) -> dict[str, RValue]:
        true = ast.BoolLiteral(span, True)
        specs = (("asm", types.STRING, None), ("result_type", types.ANY_TYPE, None))
        kws = (("constraints", types.STRING, None), ("has_side_effect", types.BOOL, true))
        params = (
            *(ast.Param(span, name, None, default, "pos") for name, _, default in specs),
            *(ast.Param(span, name, None, default, "kw") for name, _, default in kws),
        )
        binding = Binding(params, Scope(), "`inlined_assembly`", span)
        self.give(binding, function.params)
        self.complete(binding)
        for name, t, _ in (*specs, *kws):
            if name != "result_type" and binding.values[name].type != t:
                raise self.fail(
                    "E0301",
                    f"`{name}` is a {t}",
                    _span_of(name, function, span),
                    help=f"write a {t} that is known at compile time",
                )
        return binding.values

    def _check_constraints(self, text: str, results: int, operands: int, span: Span) -> None:
        pieces = [p for p in text.split(",") if p and not p.startswith("~")]
        outputs = sum(p.startswith("=") for p in pieces)
        if outputs != results or len(pieces) - outputs != operands:
            raise self.fail(
                "E0346",
                f"the constraints `{text}` name {counted(outputs, 'result')} and "
                f"{counted(len(pieces) - outputs, 'operand')}, the call has {results} and {operands}",
                span,
                help="results begin with `=`; there is one constraint for each result and operand",
            )
        for piece in pieces:
            import re  # where there is such text

            if not re.fullmatch(r"=?&?[hrlfdnibqN]|=?\d+", piece):
                raise self.fail(
                    "E0346", f"`{piece}` is not a PTX constraint", span, help="h r l f d, or n for a constant"
                )


def _span_of(name: str, function: Variadic, span: Span) -> Span:
    """Where a parameter's value is written."""
    return next((a.value.span for a, _ in function.params if a.name == name), span)


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
