"""Arrays from their specifications: the same text gives the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from ptxdsl.diagnostics import CompileError, error
from ptxdsl.run.formats import FORMATS, Array, from_values
from ptxdsl.run.specification import MAP_OPTIONS, ArraySpec, number

_MOST_BYTES = 1 << 36  # more is a slip of the finger

_BY_STORAGE = {form.storage: name for name, form in FORMATS.items() if form.exact}


def generate(name: str, spec: ArraySpec) -> tuple[Array, str]:
    """The array's storage and its element type. Raises E1015 for a file that cannot be read and for bad values."""
    if spec.generator == "file":
        return _file(name, spec)
    assert spec.dtype is not None
    form = FORMATS[spec.dtype]
    storage = np.dtype(form.storage)
    if prod(spec.shape) * storage.itemsize > _MOST_BYTES:
        help = "the simulator is for small launches: give fewer elements"
        raise error("E1015", f"argument '{name}': {spec.text} is larger than {_MOST_BYTES >> 30} GiB", None, help=help)
    try:
        values = _values(name, spec)
        if values.dtype.kind == "f" and storage.kind in "iu" and form.exact:
            values = _whole(values)
        return from_values(values, spec.dtype), spec.dtype
    except (ValueError, OverflowError) as problem:  # NumPy's, of options
        message = f"argument '{name}': {spec.text} cannot be made: {problem}"
        raise error("E1015", message, None, help="give values that the type holds") from None
    except MemoryError:
        raise error(
            "E1015", f"argument '{name}': no memory for {spec.text}", None, help="give fewer elements"
        ) from None


def _values(name: str, spec: ArraySpec) -> Array:
    dtype = spec.dtype or ""
    option = {key: number(text) for key, text in spec.options.items() if key not in MAP_OPTIONS}
    random = np.random.default_rng(int(option.get("seed", 0)))
    integer = dtype.startswith(("int", "uint"))
    if spec.generator in ("nan", "randn") and (integer or dtype == "bool"):
        what = f"argument '{name}': {spec.generator} makes no {dtype}"
        raise error("E1015", what, None, help="use randint or arange")
    if spec.generator == "randint":
        return _integers(name, spec, option, random)
    if spec.generator == "randn":
        return random.standard_normal(spec.shape) * option.get("scale", 1)
    if spec.generator == "rand":
        return random.uniform(option.get("low", 0), option.get("high", 1), spec.shape)
    if spec.generator == "arange":
        line = np.arange(prod(spec.shape)) * option.get("step", 1) + option.get("start", 0)
        return line.reshape(spec.shape)
    value = {"zeros": 0, "ones": 1, "nan": float("nan"), "full": option.get("value", 0)}[spec.generator]
    if integer and isinstance(value, int):  # as large as the type allows, in no more memory than the array itself
        limits = np.iinfo(FORMATS[dtype].storage)
        if not limits.min <= value <= limits.max:  # NumPy 1 would wrap it
            raise ValueError(f"{value} is not in {limits.min} … {limits.max}")
        return np.full(spec.shape, value, limits.dtype)
    return np.full(spec.shape, value, np.float32 if value in (0, 1) else None)


def _whole(values: Array) -> Array:
    """Floats cut to integers: what NumPy makes of others is another machine's to know. Raises ValueError."""
    if not (np.abs(values) < 2.0**63).all():
        raise ValueError("a value is not an integer of 64 bits")
    return values.astype(np.int64)


def _integers(name: str, spec: ArraySpec, option: Mapping[str, float], random: np.random.Generator) -> Array:
    """In [low, high); by default all values of an integer type, and -8 … 8 for floats."""
    storage = np.dtype(FORMATS[spec.dtype or ""].storage)
    first, last = -8, 8
    if storage.kind in "iu" and FORMATS[spec.dtype or ""].exact:
        first, last = int(np.iinfo(storage).min), int(np.iinfo(storage).max)
    if storage.kind == "b":
        first, last = 0, 1
    low, high = int(option.get("low", first)), int(option.get("high", last + 1))
    if low >= high:
        help = "the values are low to high - 1"
        raise error("E1015", f"argument '{name}': low={low} is not below high={high}", None, help=help)
    kind = np.uint64 if high > np.iinfo(np.int64).max else np.int64
    return random.integers(low, high - 1, spec.shape, dtype=kind, endpoint=True)


def _file(name: str, spec: ArraySpec) -> tuple[Array, str]:
    try:
        array = np.load(spec.path or "", allow_pickle=False)
    except MemoryError:
        raise _unreadable(name, spec, "this computer has no memory for it") from None
    except Exception as problem:  # of a file that anybody has made; NumPy's parser of headers raises Python's own
        reason = getattr(problem, "strerror", None) or str(problem).partition("\n")[0]
        if "allow_pickle" in reason:
            reason = "it has no numbers, or is no .npy file"
        raise _unreadable(name, spec, reason) from None
    if not isinstance(array, np.ndarray) or array.dtype.name not in _BY_STORAGE:
        raise _unreadable(name, spec, f"its elements are {getattr(array, 'dtype', type(array).__name__)}")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    return np.ascontiguousarray(native).reshape(array.shape), _BY_STORAGE[array.dtype.name]


def _unreadable(name: str, spec: ArraySpec, reason: str) -> CompileError:
    message = f"argument '{name}': cannot read '{spec.path}': {reason}"
    return error("E1015", message, None, help="numpy.save writes such files")
