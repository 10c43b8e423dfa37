"""Kernels that evaluate many expressions of many values, and the values: shared by the tests of this folder."""

import numpy as np

INTEGERS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
NUMPY = {name: np.dtype(name.lower()) for name in INTEGERS} | {
    "Int": np.dtype("int64"),
    "UInt": np.dtype("uint64"),
    "Float16": np.dtype("float16"),
    "Float32": np.dtype("float32"),
    "Float64": np.dtype("float64"),
}

COMPARISONS = ["a < b", "a <= b", "a > b", "a >= b", "a == b", "a != b"]


def rows_kernel(inputs, expressions, imports=""):
    """A kernel whose row r of every output is one expression of its inputs a, b, … at each element.

    inputs: the element types. expressions: (expression, output type); all rows of one type go to one array.
    """
    names = "abcd"[: len(inputs)]
    outputs = list(dict.fromkeys(kind for _, kind in expressions))
    header = [f"in_{name}: Pointer[{kind}, MutAnyOrigin]" for name, kind in zip(names, inputs, strict=True)]
    header += [f"r{i}: Pointer[{kind}, MutAnyOrigin]" for i, kind in enumerate(outputs)]
    lines = [imports, f"@kernel\ndef rows({', '.join(header)}, n: Int32):"]
    lines += ["    var i = Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)", "    if i < n:"]
    lines += [f"        var {name} = in_{name}[unsafe_offset=i]" for name in names]
    row = dict.fromkeys(outputs, 0)
    for text, kind in expressions:
        lines.append(f"        r{outputs.index(kind)}[unsafe_offset={row[kind]} * n + i] = {text}")
        row[kind] += 1
    return "\n".join(lines) + "\n", outputs


SPECIAL = {"Bool": ("uint8", "bool"), "BFloat16": ("uint16", "bfloat16")} | {
    name: ("uint8", name.lower()) for name in ("Float8_e4m3fn", "Float8_e5m2")
}


def storage(kind):
    """NumPy's type for a type's bits."""
    return np.dtype(SPECIAL[kind][0]) if kind in SPECIAL else NUMPY[kind]


def check(expressions, found, expected, *inputs):
    """Every row equal to the bit, with the first differing elements in the message."""
    for (text, _), got, want in zip(expressions, found, expected, strict=True):
        want = np.asarray(want).astype(got.dtype)
        bits = f"u{got.dtype.itemsize}"
        wrong = (got.view(bits) != want.view(bits)) & ~(is_nan(got) & is_nan(want))
        where = np.flatnonzero(wrong)[:5]
        cases = [f"{[x[i] for x in inputs]}: {got[i]}, expected {want[i]}" for i in where]
        assert not wrong.any(), f"{text}: {wrong.sum()} of {len(got)} differ; " + "; ".join(cases)


def is_nan(values):
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)


def edges(kind, rng, randoms=12):
    """Zero, one, powers, the ends of the range, and random values."""
    info = np.iinfo(NUMPY[kind])
    values = {
        0,
        1,
        2,
        3,
        5,
        7,
        8,
        info.bits - 1,
        info.bits,
        info.max,
        info.max - 1,
        info.min,
        info.min + 1,
        info.max // 2 + 1,
    }
    values |= {-1, -2, -3, -7} if info.min < 0 else set()
    values |= {int(v) for v in rng.integers(info.min, info.max, randoms, dtype=NUMPY[kind], endpoint=True)}
    return sorted(v for v in values if info.min <= v <= info.max)


def floats(kind, rng, randoms=400):
    """Zeros, subnormals, ties, the ends of the range, infinities, NaN, and random values of every magnitude."""
    form = NUMPY[kind]
    info = np.finfo(form)
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 255.0, 256.0, 65504.0, 65520.0, np.inf, -np.inf, np.nan]
    special += [float(v) for v in (info.max, info.min, info.tiny, info.smallest_subnormal, -info.smallest_subnormal)]
    with np.errstate(over="ignore"):
        spread = rng.choice([-1, 1], randoms) * 2.0 ** rng.uniform(
            np.log2(float(info.tiny)) / 2, np.log2(float(info.max)) / 2, randoms
        )
        return np.concatenate([np.array(special), spread]).astype(form)
