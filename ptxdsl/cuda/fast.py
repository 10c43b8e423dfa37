"""The fast path of a checked launch: code that is generated for the classes of arguments a kernel was launched with.

The general way (``arguments.py``) looks at every argument anew, which takes ten times as long as the launch. When it
has accepted arguments, a function is written that asks only what can differ the next time: class, element type, device,
contiguity, alignment and range. It launches, or says that it is not meant for these arguments, and then the general
way runs again and finds the words for what is wrong. Nothing is accepted here that the general way would refuse.
"""

from __future__ import annotations

import numbers
import struct
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

from ptxdsl.cuda.arguments import TENSOR_MAP_BYTES, Packer
from ptxdsl.cuda.arrays import is_tensor_map
from ptxdsl.cuda.scalars import SCALARS, encode_float
from ptxdsl.record import dataclass, field
from ptxdsl.signature import Param, PointerParam, ScalarParam, StructParam, TensorMapParam

OFTEN = 50  # launches after which machine code is worth its making
NOT_MINE = -1  # what a quick launch gives for arguments that it is not for; else the driver's status

# (plan, stream, arguments) -> status
Quick = Callable[[Any, Any, Sequence[Any]], int]

# By library, of an array `{a}`: the device that it is on, whether it is contiguous (empty: always), its address.
LIBRARIES = {
    "torch": ("{a}.get_device()", "{a}.is_contiguous()", "{a}.data_ptr()"),
    "cupy": ("{a}.data.device_id", "{a}._c_contiguous", "{a}.data.ptr"),
    "ptxdsl": ("{a}.ordinal", "", "{a}.address"),
}


@dataclass
class _Writer:
    """Statements of the function, and the objects that they name."""

    packer: Packer
    ordinal: int
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    formats: list[tuple[int, str]] = field(default_factory=list)  # size in bytes and letter of each leaf
    values: list[str] = field(default_factory=list)
    pointers: dict[int, list[str]] = field(default_factory=dict)  # by alignment
    key: list[Any] = field(default_factory=list)
    count: int = 0

    def name(self, value: Any, prefix: str) -> str:
        made = f"{prefix}{len(self.names)}"
        self.names[made] = value
        return made

    def variable(self) -> str:
        self.count += 1
        return f"a{self.count - 1}"

    def refuse_if(self, condition: str) -> None:
        self.lines.append(f"if {condition}: return {NOT_MINE}")

    def unpack(self, names: Sequence[str], value: str) -> None:
        if names:  # one name needs the comma
            self.lines.append(f"{', '.join(names)}, = {value}")
        else:
            self.refuse_if(value)


def write(packer: Packer, arguments: Sequence[Any], ordinal: int) -> _Writer | None:
    """The checks and the packing for arguments that have been accepted; None where there is no fast path for them."""
    writer = _Writer(packer, ordinal)
    params = packer.signature.params
    names = [writer.variable() for _ in params]
    writer.unpack(names, "arguments")
    for param, name, value in zip(params, names, arguments, strict=True):
        if not _leaf(writer, param, name, value):
            return None
    for align, addresses in writer.pointers.items():
        if align > 1:
            writer.refuse_if(f"({' | '.join(addresses)}) & {align - 1}")
    return writer


def _leaf(writer: _Writer, param: Param, name: str, value: Any) -> bool:
    kind = type(value)
    if isinstance(param, StructParam):
        return _struct(writer, param, name, value)
    writer.key.append(kind)
    writer.refuse_if(f"{name}.__class__ is not {writer.name(kind, 'C')}")
    if isinstance(param, ScalarParam):
        return _scalar(writer, param, name, value)
    if isinstance(param, PointerParam):
        return _pointer(writer, param, name, value)
    return _tensor_map(writer, param, name, value)


def _tensor_map(writer: _Writer, param: Param, name: str, value: Any) -> bool:
    writer.formats.append((TENSOR_MAP_BYTES, f"{TENSOR_MAP_BYTES}s"))
    if type(value) is bytes:
        writer.values.append(name)
        writer.refuse_if(f"len({name}) != {TENSOR_MAP_BYTES}")
        return True
    library = _library(value.array) if is_tensor_map(value) else None
    if library is None:
        return False
    if isinstance(param, TensorMapParam) and param.needs_form:  # other boxes may be wrong
        writer.key.append(value.form)
        writer.refuse_if(f"{name}.form is not {writer.name(value.form, 'F')}")
    kind = type(value.array)  # the current stream of its library may be the one that counts
    writer.key.append(kind)
    device = LIBRARIES[library][0].format(a=f"{name}.array")
    writer.refuse_if(f"{name}.array.__class__ is not {writer.name(kind, 'C')} or {device} != {writer.ordinal}")
    writer.values.append(f"{name}.data")
    return True


def _struct(writer: _Writer, param: StructParam, name: str, value: Any) -> bool:
    kind = type(value)
    fields = [writer.variable() for _ in param.fields]
    writer.key.append(kind)
    writer.refuse_if(f"{name}.__class__ is not {writer.name(kind, 'C')}")
    if kind is dict:
        writer.refuse_if(f"len({name}) != {len(fields)}")
        for inner, field_ in zip(fields, param.fields, strict=True):
            writer.lines.append(f"{inner} = {name}[{field_.name!r}]")
        items = [value[f.name] for f in param.fields]
    elif issubclass(kind, tuple | list):
        writer.unpack(fields, name)
        items = list(value)
    else:
        return False
    return all(_leaf(writer, p, n, v) for p, n, v in zip(param.fields, fields, items, strict=True))


def _scalar(writer: _Writer, param: ScalarParam, name: str, value: Any) -> bool:
    form = SCALARS[param.dtype]
    letter = {"bool": "?", "float16": "e"}.get(param.dtype, form.format)
    if form.kind == "bool":
        writer.formats.append((1, letter))
        writer.values.append(name)
        return type(value) is bool
    if letter:
        writer.formats.append((form.size, letter))
        writer.values.append(name)
        return not isinstance(value, bool) and isinstance(value, numbers.Real)
    dtype = param.dtype

    def code(number: Any) -> int:
        return int.from_bytes(encode_float(float(number), dtype), "little")

    writer.formats.append((form.size, "BH"[form.size - 1]))
    writer.values.append(f"{writer.name(code, 'F')}({name})")
    return True


def _library(array: Any) -> str | None:
    """Of LIBRARIES; None for an array of another, and for a donated one, whose launch waits."""
    kind = type(array)
    library = "torch" if hasattr(kind, "data_ptr") else kind.__module__.partition(".")[0]
    return library if library in LIBRARIES and hasattr(array, "dtype") else None


def _pointer(writer: _Writer, param: PointerParam, name: str, value: Any) -> bool:
    library = _library(value)
    if library is None or param.dtype not in SCALARS:
        return False
    device, contiguous, address = (text.format(a=name) for text in LIBRARIES[library])
    dtype = value.dtype
    writer.key.append(dtype)
    test = f"{device} != {writer.ordinal}{f' or not {contiguous}' if contiguous else ''}"
    writer.refuse_if(f"{name}.dtype is not {writer.name(dtype, 'D')} or {test}")
    place = f"p{len(writer.values)}"
    writer.lines.append(f"{place} = {address}")
    writer.formats.append((8, "Q"))
    writer.values.append(place)
    writer.pointers.setdefault(param.align, []).append(place)
    return True


def build(
    writer: _Writer,
    *,
    launch: Any,
    function: Any,
    room: Callable[[], tuple[bytearray, int, Any]],
    current: Callable[[int], int] | None,
    stream_handle: Callable[[Any], int],
    record: Callable[[Any], None],
    other_device: Callable[[], bool] | None,
    often: Callable[[], None],
) -> Quick:
    """The function. launch: cuLaunchKernelEx; function: its kernel; room: makes room for the parameters (buffer,
    offset, the driver's pointer); current: the caller's current stream of a device; record: is told of each launch.

    other_device: whether another device than the kernel's is current, None where there is but one. often: is called
    once, when there have been many launches.
    """
    pack = struct.Struct(_format(writer.packer.offsets, writer.formats)).pack_into
    lines = list(writer.lines)
    if other_device is not None:
        lines.insert(0, f"if other_device(): return {NOT_MINE}")
    current_text = f"current({writer.ordinal})" if current is not None else "0"
    lines.append(f"handle = {current_text} if stream is None else stream_handle(stream)")
    lines.append("if next(ticks, False): often()")
    frame = "None"
    if writer.values:
        lines += ["try: frame = pop()", "except IndexError: frame = room()"]
        lines += ["buffer, offset, parameters = frame", f"pack(buffer, offset, {', '.join(writer.values)})"]
        frame = "parameters"
    body = "\n   ".join(lines)
    text = f"""
def quick(plan, stream, arguments):
  try:
   {body}
  except Exception:
   return {NOT_MINE}
  config = plan.configs.get(handle) or plan.config(handle)
  record(plan)
  status = launch(config, function, {frame}, None)
  {"push(frame)" if writer.values else ""}
  return status
"""
    # A stack of rooms, taken and put back in one step each: threads, and whatever interrupts one, never share a room.
    rooms: list[tuple[bytearray, int, Any]] = []
    outside = {
        "launch": launch, "function": function, "room": room, "current": current, "stream_handle": stream_handle,
        "record": record, "often": often, "ticks": chain(repeat(False, OFTEN), [True]), "other_device": other_device,
        "pack": pack, "pop": rooms.pop, "push": rooms.append, **writer.names,
    }  # fmt: skip
    # Parameters of an enclosing function are the quickest to read for the one inside.
    inner = "".join(f" {line}\n" for line in text.splitlines())
    source = f"def make({', '.join(outside)}):\n{inner} return quick\n"
    namespace: dict[str, Any] = {}
    exec(compile(source, f"<launch of {writer.packer.signature.name}>", "exec"), namespace)
    made: Quick = namespace["make"](**outside)
    return made


def _format(offsets: Sequence[int], formats: Sequence[tuple[int, str]]) -> str:
    text, end = "<", 0
    for offset, (size, letter) in zip(offsets, formats, strict=True):
        text += f"{offset - end}x" if offset > end else ""
        text += letter
        end = offset + size
    return text
