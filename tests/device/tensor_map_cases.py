"""Parameter sets for the tensor map dumps: what to encode, which copies to make. Data, no driver.

A set has the arguments of cuTensorMapEncodeTiled by name. ``address`` is relative to the array where one is copied.
"""

from __future__ import annotations

from typing import Any

Parameters = dict[str, Any]

# In the order of CUtensorMapDataType: name and bytes of an element (the last three are packed: bits of one element).
DATA_TYPES = (
    ("u8", 1),
    ("u16", 2),
    ("u32", 4),
    ("s32", 4),
    ("u64", 8),
    ("s64", 8),
    ("f16", 2),
    ("f32", 4),
    ("f64", 8),
    ("bf16", 2),
    ("f32.ftz", 4),
    ("tf32", 4),
    ("tf32.ftz", 4),
    ("b4x16", 0.5),
    ("b4x16_p64", 0.5),
    ("b6x16_p32", 0.75),
)
SIZES = dict(DATA_TYPES)
SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
INTERLEAVES = ("none", "16B", "32B")
PROMOTIONS = ("none", "64B", "128B", "256B")
FILLS = ("zero", "nan")


def tensor(
    data_type: str, dims: list[int], box: list[int], strides: list[int] | None = None, **changes: Any
) -> Parameters:
    """One set; strides in bytes, packed if they are not given."""
    if strides is None:
        strides, step = [], SIZES[data_type]
        for size in dims[:-1]:
            step *= size
            strides.append(int(step))
    base: Parameters = {
        "data_type": data_type,
        "address": 0,
        "dims": dims,
        "strides": strides,
        "box": box,
        "element_strides": [1] * len(dims),
        "interleave": "none",
        "swizzle": "none",
        "l2_promotion": "none",
        "fill": "zero",
    }
    return base | changes


BASE = 0x7F12_3456_7800


def encodings() -> list[Parameters]:
    """Each field alone at several values, then each rule broken or at its edge."""
    plain = tensor("u16", [64, 48], [32, 8], address=BASE)
    sets = [plain]
    sets += [plain | {"address": a} for a in (0x10, 0x20, 0x40, 0x1_0000_0000, 0x7FFF_FFFF_FFF0, 0xFF_FFFF_FFFF_FFF0)]
    sets += [
        tensor(name, [128, 48], [128 if size < 1 else int(32 // size), 8], address=BASE) for name, size in DATA_TYPES
    ]
    for rank in range(1, 6):
        dims, box = [80, 3, 5, 7, 9][:rank], [16, 2, 3, 4, 5][:rank]
        sets.append(tensor("u16", dims, box, address=BASE))
        sets.append(tensor("u16", dims, box, address=BASE) | {"element_strides": [1, 2, 3, 4, 5][:rank]})
    wide = [16, 0x12_3456_7890, 0xA5_5AA5_5AA0, 0xFF_FFFF_FFF0]
    sets.append(tensor("u16", [8, 2, 2, 2, 2], [8, 1, 1, 1, 1], wide, address=BASE))
    sets.append(tensor("u8", [2**32, 2**32 - 1], [16, 256], [0x10_0000_0000], address=BASE))
    sets += [plain | {"box": box} for box in ([8, 1], [256, 256], [248, 1], [64, 3])]
    sets += [plain | {"element_strides": steps} for steps in ([2, 1], [8, 8], [1, 7])]
    sets += [tensor("u8", [256, 8], [32, 4], address=BASE, swizzle=s) for s in SWIZZLES]
    sets += [plain | {"l2_promotion": p} for p in PROMOTIONS]
    sets += [plain | {"data_type": t, "fill": "nan"} for t in ("f16", "bf16", "u16")]
    sets += [tensor(t, [64, 48], [8, 8], address=BASE, fill="nan") for t in ("f32", "f64", "tf32", "f32.ftz", "s32")]
    for interleave in INTERLEAVES:
        for swizzle in ("none", "32B", "128B"):
            for rank in (2, 3, 4, 5):
                dims, box = [64, 6, 5, 4, 3][:rank], [16, 2, 2, 1, 1][:rank]
                strides = [64, 512, 4096, 32768][: rank - 1]
                sets.append(tensor("u16", dims, box, strides, address=BASE, interleave=interleave, swizzle=swizzle))
    sets += [tensor("u8", [256, 256, 999], [256, 256, k], address=BASE) for k in (2, 3, 4, 8, 15, 16, 17, 128, 256)]
    for channels in (1, 3, 7, 8, 9, 16, 256):
        sets.append(tensor("u16", [20, 5, 4], [8, channels, 2], [512, 4096], address=BASE, interleave="16B"))
        sets.append(
            tensor("u16", [20, 5, 4], [16, channels, 2], [512, 4096], address=BASE, interleave="32B", swizzle="32B")
        )
    sets += broken_rules()
    return sets


def broken_rules() -> list[Parameters]:
    """Each documented rule broken alone, and undocumented edges."""
    plain = tensor("u16", [64, 48], [32, 8], address=BASE)
    cube = tensor("u16", [64, 6, 5], [16, 2, 2], [64, 512], address=BASE, interleave="16B")
    packed = tensor("b4x16_p64", [128, 8], [128, 8], [64], address=BASE)
    return [
        plain | {"address": BASE + 8},
        plain | {"address": BASE + 1},
        cube | {"interleave": "32B", "swizzle": "32B", "address": BASE + 16},
        cube | {"interleave": "32B", "swizzle": "none"},
        cube | {"interleave": "32B", "swizzle": "32B", "strides": [80, 512]},
        plain | {"dims": [0, 48]},
        plain | {"dims": [64, 0]},
        plain | {"dims": [64, 2**32 + 1]},
        plain | {"strides": [136]},
        plain | {"strides": [0]},
        plain | {"strides": [64]},
        plain | {"strides": [2**40]},
        plain | {"strides": [2**40 - 16]},
        tensor("u16", [64, 48, 4], [32, 8, 1], [128, 64], address=BASE),
        plain | {"box": [0, 8]},
        plain | {"box": [32, 0]},
        plain | {"box": [264, 8]},
        plain | {"box": [32, 257]},
        plain | {"box": [12, 8]},
        plain | {"box": [20, 8]},
        plain | {"box": [128, 64]},
        tensor("f64", [64, 256, 4], [256, 256, 2], address=BASE),
        plain | {"element_strides": [1, 0]},
        plain | {"element_strides": [1, 9]},
        plain | {"element_strides": [0, 1]},
        plain | {"element_strides": [9, 1]},
        plain | {"swizzle": "32B", "box": [16, 8]},
        plain | {"swizzle": "32B", "box": [24, 8]},
        plain | {"swizzle": "64B", "box": [40, 8]},
        plain | {"swizzle": "128B", "box": [72, 8]},
        plain | {"swizzle": "128B", "box": [40, 8]},
        cube | {"box": [12, 2, 2]},
        cube | {"box": [64, 2, 2], "swizzle": "32B"},
        cube | {"box": [8, 2, 2]},
        cube | {"element_strides": [2, 1, 1]},
        packed | {"address": BASE + 16},
        packed | {"dims": [64, 8]},
        packed | {"box": [64, 8]},
        packed | {"strides": [80]},
        packed | {"swizzle": "64B"},
        packed | {"fill": "nan"},
        tensor("b4x16", [33, 8], [32, 8], [32], address=BASE),
        tensor("b6x16_p32", [128, 8], [128, 8], [96], address=BASE),
        tensor("b6x16_p32", [128, 8, 2], [128, 8, 1], [96, 768], address=BASE, interleave="16B"),
    ]


def loads() -> list[dict[str, Any]]:
    """Copies global -> shared. map: parameters; at: the coordinates; offset: from a 1024-byte boundary; data: what the
    array holds (``index``: 16-bit numbers counting up, ``floats``: special f32 values)."""
    cases: list[dict[str, Any]] = []

    def add(parameters: Parameters, at: list[int], offset: int = 0, data: str = "index") -> None:
        cases.append({"map": parameters, "at": at, "offset": offset, "data": data})

    spans = {"32B": 16, "64B": 32, "128B": 64}
    for swizzle, inner in spans.items():
        whole = tensor("u16", [128, 40], [inner, 12], swizzle=swizzle)
        add(whole, [8, 3])
        for offset in (128, 256, 384, 512, 896):
            add(whole, [0, 1], offset)
        for part in (8, 16, 24, 32, 40, 48, 56):
            if part < inner:
                add(whole | {"box": [part, 10]}, [8, 2])
        add(tensor("u16", [64, 6, 7], [inner, 3, 3], swizzle=swizzle), [0, 1, 2])
    for inner in (8, 24, 64, 72, 256):
        add(tensor("u16", [256, 20], [inner, 5]), [8, 2])
    add(tensor("u16", [128, 40], [16, 4]), [16, 1], 128)
    for rank in range(1, 6):
        dims, box = [40, 6, 5, 4, 3][:rank], [16, 3, 2, 3, 2][:rank]
        add(tensor("u16", dims, box), [8, 2, 1, 0, 1][:rank])
        add(tensor("u16", dims, box), [-8, -1, -1, 2, -1][:rank])
    edge = tensor("u16", [40, 12], [16, 6])
    for at in ([-8, -2], [32, 9], [40, 0], [0, 12], [-16, 0], [-2147483648, 0], [2147483640, 2147483647], [-104, 5]):
        add(edge, at)
    add(tensor("u16", [37, 12], [16, 6], [80]), [24, 9])
    add(tensor("u16", [37, 12], [64, 6], [80], swizzle="128B"), [-8, -1])
    for data_type, size in DATA_TYPES[:13]:
        if data_type.startswith(("f", "bf", "tf")):
            inner, chunk = int(64 // size), int(16 // size)
            add(tensor(data_type, [inner - 1, 12], [inner // 2, 4], [64], fill="nan"), [inner // 2 + chunk, 10])
            add(tensor(data_type, [inner, 12], [inner, 4]), [0, 0], 0, "floats")
    steps = tensor("u16", [64, 30], [16, 7])
    for step in (2, 3, 4, 8):
        add(steps | {"element_strides": [1, step]}, [8, 4])
        add(steps | {"element_strides": [1, step]}, [8, -3])
        add(steps | {"element_strides": [1, step]}, [8, 27])
        add(steps | {"element_strides": [step, 1]}, [8, 4])
    add(tensor("u16", [64, 8, 9], [16, 5, 6], element_strides=[1, 2, 3]), [8, -1, 5])
    add(tensor("u16", [64, 30], [64, 24], element_strides=[1, 2], swizzle="128B"), [0, 1])
    cases += interleaved()
    for swizzle in SWIZZLES[4:]:
        add(tensor("u16", [128, 40], [64, 12], swizzle=swizzle), [8, 3])
    # refused by the card: rows that do not start at 16 bytes, tiles that do not lie at 128
    add(tensor("u16", [256, 20], [8, 5]), [3, 2])
    for offset in (16, 64):
        add(tensor("u16", [256, 20], [8, 5]), [0, 0], offset)
    add(tensor("u16", [128, 40], [16, 10], swizzle="32B"), [0, 0], 64)
    return cases


def interleaved() -> list[dict[str, Any]]:
    """Loads of tensors whose channels are in slices of 16 or 32 bytes."""
    cases: list[dict[str, Any]] = []

    def add(parameters: Parameters, at: list[int]) -> None:
        cases.append({"map": parameters, "at": at, "offset": 0, "data": "index"})

    pixels = tensor("u16", [20, 5, 4], [8, 3, 2], [512, 4096], interleave="16B")
    for at in ([0, 0, 0], [8, 1, 1], [3, 0, 0], [16, 3, 3], [-4, -1, -1], [0, 4, 3], [0, 5, 0], [0, 0, -2]):
        add(pixels, at)
    for channels in (1, 2, 4, 7, 8, 9, 12, 16, 17, 24, 32, 40):
        add(pixels | {"box": [8, channels, 1]}, [4, 0, 0])
    for channels in (8, 16, 24):
        add(pixels | {"box": [8, channels, 2]}, [4, 2, 1])
        add(pixels | {"box": [8, channels, 1]}, [4, -1, 1])
        add(pixels | {"box": [8, channels, 1], "dims": [20, 3, 4]}, [4, 1, 1])
        add(pixels | {"box": [8, channels, 1], "data_type": "u8"}, [4, 0, 0])
        add(pixels | {"box": [8, channels, 1], "data_type": "f32", "fill": "nan"}, [16, 3, 0])
    for steps in ([2, 1, 1], [3, 1, 1], [1, 2, 1], [1, 8, 1], [1, 1, 2]):
        add(pixels | {"element_strides": steps, "box": [8, 16, 2]}, [1, 0, 1])
    add(pixels | {"swizzle": "32B"}, [0, 0, 0])
    add(pixels | {"swizzle": "64B"}, [0, 0, 0])
    add(pixels | {"swizzle": "128B"}, [0, 0, 0])
    images = tensor("u16", [10, 5, 4, 3], [8, 3, 2, 2], [256, 2048, 8192], interleave="16B")
    for channels in (2, 8, 16):
        add(images | {"box": [8, 3, channels, 2]}, [1, 1, 2, 1])
        add(images | {"box": [8, channels, 2, 2]}, [1, -1, -1, 0])
    volumes = tensor("u16", [8, 3, 3, 2, 2], [4, 2, 2, 16, 2], [256, 1024, 4096, 8192], interleave="16B")
    add(volumes, [1, 1, 1, 0, 0])
    wide = tensor("u16", [10, 5, 4], [8, 3, 2], [512, 4096], interleave="32B", swizzle="32B")
    for at in ([0, 0, 0], [1, 1, 0], [5, 0, 1], [-3, 4, 3]):
        add(wide, at)
    for channels in (8, 15, 16, 17, 32, 48):
        add(wide | {"box": [8, channels, 1]}, [1, 0, 0])
    return cases


def stores() -> list[dict[str, Any]]:
    """Copies shared -> global, as ``loads``; shared memory holds 16-bit numbers counting up. reduce: an operation."""
    cases: list[dict[str, Any]] = []

    def add(parameters: Parameters, at: list[int], offset: int = 0, reduce: str | None = None) -> None:
        cases.append({"map": parameters, "at": at, "offset": offset, "reduce": reduce})

    for swizzle, inner in {"none": 24, "32B": 16, "64B": 32, "128B": 64}.items():
        add(tensor("u16", [128, 20], [inner, 12], swizzle=swizzle), [8, 3])
        add(tensor("u16", [128, 20], [inner, 12], swizzle=swizzle), [-8, 15], 128)
        if swizzle != "none":
            add(tensor("u16", [128, 20], [inner // 2, 12], swizzle=swizzle), [8, 3])
    edge = tensor("u16", [40, 12], [16, 6])
    for at in ([-8, -2], [32, 9], [40, 0], [8, 5]):
        add(edge, at)
    add(tensor("u16", [37, 12], [16, 6], [80]), [24, 2])
    # where does what is written end, in a row that ends between 16-byte boundaries?
    add(tensor("u16", [33, 6], [32, 3], [128]), [16, 1])
    add(tensor("u8", [65, 6], [48, 3], [128]), [32, 1])
    add(tensor("f32", [17, 6], [8, 3], [128]), [12, 1])
    add(tensor("f64", [9, 6], [8, 3], [128]), [4, 1])
    add(tensor("u32", [17, 6], [8, 3], [128]), [12, 1], 0, "add")
    add(tensor("u16", [33, 6], [32, 3], [128], swizzle="64B"), [16, 1])
    add(tensor("u16", [64, 30], [16, 7], element_strides=[1, 2]), [8, 4])
    add(tensor("u16", [64, 30], [16, 7], element_strides=[1, 3]), [8, -2])
    add(tensor("u16", [20, 5, 4], [8, 16, 2], [512, 4096], interleave="16B"), [8, 1, 1])
    add(tensor("u16", [20, 5, 4], [8, 8, 2], [512, 4096], interleave="16B"), [15, 1, 3])
    add(tensor("u16", [10, 5, 4], [8, 16, 2], [512, 4096], interleave="32B", swizzle="32B"), [1, 1, 1])
    add(tensor("u16", [40], [16]), [32])
    add(tensor("u16", [40, 6, 5], [16, 3, 2]), [32, 4, -1])
    for data_type in ("tf32", "f32.ftz"):  # are elements converted on their way out?
        add(tensor(data_type, [32, 6], [8, 3]), [8, 2])
    for operation in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
        add(tensor("u32", [32, 6], [8, 3]), [4, 4], 0, operation)
    add(tensor("s32", [32, 6], [8, 3]), [4, 2], 0, "min")
    for data_type in ("f16", "bf16", "f32"):
        add(tensor(data_type, [32, 6], [8, 3]), [8, 4], 0, "add")
    return cases
