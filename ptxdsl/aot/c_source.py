"""A header and a source in C99 that hold kernels and launch them through the driver's API (``cuda.h`` alone).

The fixed parts are the files ``launch.h`` and ``launch.c`` beside this one; what depends on the kernels is made here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from math import prod

from ptxdsl.aot.c_types import Names, Parameter, Structs, parameters
from ptxdsl.record import dataclass
from ptxdsl.signature import KernelSignature, PointerParam, TensorMapParam
from ptxdsl.version import __version__

_BYTES_A_LINE = 24
_FIRST_CUDA = 12000  # whose cuda.h has tensor maps and launch attributes


@dataclass(frozen=True)
class Image:
    """Code for one target: a cubin, or PTX with the zero byte that ends it."""

    target: str
    data: bytes


@dataclass(frozen=True)
class _Kernel:
    """c: its name in C; number: its place in the module's table."""

    signature: KernelSignature
    number: int
    function: str
    parameters: tuple[Parameter, ...]


class CSource:
    """The two files. images: in the order in which they are tried. origin: the kernels' file, for the comment."""

    def __init__(self, name: str, signatures: Sequence[KernelSignature], images: Sequence[Image], origin: str) -> None:
        names = Names()
        self.name = names.of(name)
        self._file = name
        self._images = images
        self._origin = re.sub(r"[^\w. -]", "_", origin)
        self._module, self._load_name, self._unload_name = (
            names.of(f"{self.name}_{what}") for what in ("module", "load", "unload")
        )
        self._structs = Structs(self.name, names)
        self._kernels = [
            _Kernel(
                signature,
                number,
                names.of(f"{self.name}_launch" if len(signatures) == 1 else f"{self.name}_{signature.name}_launch"),
                tuple(parameters(signature, self._structs)),
            )
            for number, signature in enumerate(signatures)
        ]

    def header(self) -> str:
        name, guard = self.name, f"PTXDSL_{self.name.upper()}_H"
        launches = "\n".join(f"{_description(k.signature)}{self._prototype(k)};\n" for k in self._kernels)
        structs = "".join(f"{text}\n" for text in self._structs.texts)
        targets = ", ".join(dict.fromkeys(image.target for image in self._images))
        return f"""{self._banner()}
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#if CUDA_VERSION < {_FIRST_CUDA}
#error "{name} needs cuda.h of CUDA {_FIRST_CUDA // 1000}.0 or later"
#endif

#ifdef __cplusplus
extern "C" {{
#endif

{_part("launch.h")}
/* The code in one context. Zero it before the first use; it may be read by several threads at a time. */
typedef struct {self._module} {{
    CUmodule module;
    ptxdsl_device device;
    ptxdsl_kernel kernels[{len(self._kernels)}];
}} {self._module};

{structs}/* Loads the code ({targets}) into the thread's current context: once for each context that launches it. */
CUresult {self._load_name}({self._module} *module, ptxdsl_error *error);

/* Gives it back. What was launched must have ended, and its context be current. Unloading twice does nothing. */
CUresult {self._unload_name}({self._module} *module, ptxdsl_error *error);

{launches}
#ifdef __cplusplus
}}
#endif

#endif
"""

    def source(self) -> str:
        images = "\n".join(_array(number, image) for number, image in enumerate(self._images))
        table = "".join(f'    {{&image_{n}, "{image.target}"}},\n' for n, image in enumerate(self._images))
        rules = "".join(f"    {_rules(k.signature)},\n" for k in self._kernels)
        return f"""{self._banner()}
#include "{self._file}.h"

{_part("launch.c")}
{images}
static const image images[] = {{
{table}}};

static const rules kernels[] = {{
{rules}}};

{self._load()}{"".join(self._launch(kernel) for kernel in self._kernels)}"""

    def _banner(self) -> str:
        return f"/* Kernels of {self._origin}, written by ptxdsl {__version__}: change them there. */\n"

    def _load(self) -> str:
        count = len(self._kernels)
        return f"""\
CUresult {self._load_name}({self._module} *module, ptxdsl_error *error)
{{
    CUresult result;
    int i;
    memset(module, 0, sizeof *module);
    result = describe(&module->device, error);
    if (result != CUDA_SUCCESS) return result;
    result = load_images(&module->module, &module->device, images, {len(self._images)}, error);
    if (result != CUDA_SUCCESS) return result;
    for (i = 0; i < {count} && result == CUDA_SUCCESS; i++)
        result = find_kernel(&module->kernels[i], module->module, &module->device, &kernels[i], error);
    if (result == CUDA_SUCCESS) return succeed(error);
    cuModuleUnload(module->module);
    memset(module, 0, sizeof *module);
    return result;
}}

CUresult {self._unload_name}({self._module} *module, ptxdsl_error *error)
{{
    CUresult result = module->module == NULL ? CUDA_SUCCESS : cuModuleUnload(module->module);
    memset(module, 0, sizeof *module);
    return result == CUDA_SUCCESS ? succeed(error) : refused(error, result, "{self.name} cannot be unloaded");
}}
"""

    def _prototype(self, kernel: _Kernel) -> str:
        rows = [(p.declaration, p.comment) for p in kernel.parameters]
        rows = [(f"const {self._module} *module", ""), ("const ptxdsl_shape *shape", ""), *rows]
        lines = [f"    {declared},{f' /* {comment} */' if comment else ''}\n" for declared, comment in rows]
        return f"CUresult {kernel.function}(\n{''.join(lines)}    ptxdsl_error *error)"

    def _launch(self, kernel: _Kernel) -> str:
        leaves = [leaf for p in kernel.parameters for leaf in p.leaves]
        checks, places = [], []
        for number, leaf in enumerate(leaves):
            place, wrong = f"&{leaf.c}", None
            if isinstance(leaf.param, TensorMapParam):
                place = f"(void *){leaf.c}"
                wrong = f"{leaf.c} == NULL || (uintptr_t){leaf.c} % 64 != 0", "NULL, or not a multiple of 64"
            elif isinstance(leaf.param, PointerParam) and leaf.param.align > 1:
                wrong = f"{leaf.c} % {leaf.param.align} != 0", f"not a multiple of {leaf.param.align}"
            if wrong is not None:
                words = f"argument '{leaf.path}' of kernel '{kernel.signature.name}' is {wrong[1]}"
                checks.append(
                    f'    if ({wrong[0]})\n        return fail(error, CUDA_ERROR_INVALID_VALUE, "{words}");\n'
                )
            places.append(f"    arguments[{number}] = {place};\n")
        unused = "".join(f"    (void){p.declaration.split()[-1]};\n" for p in kernel.parameters if not p.leaves)
        number = kernel.number
        return f"""
{self._prototype(kernel)}
{{
    void *arguments[{max(len(leaves), 1)}] = {{NULL}};
{unused}{"".join(checks)}{"".join(places)}\
    return launch(&module->device, &module->kernels[{number}], &kernels[{number}], shape, arguments, error);
}}
"""


def _description(signature: KernelSignature) -> str:
    """The comment above a launch function."""
    said = [f"Launches '{signature.name}' and does not wait for it."]
    if signature.threads is not None:
        said.append(f"A block has {_times(signature.threads)} threads.")
    elif signature.max_threads is not None:
        said.append(f"A block has up to {prod(signature.max_threads)} threads.")
    if signature.threads is None and signature.thread_count is not None:
        said.append(f"A block has {signature.thread_count} threads, in whatever shape.")
    if signature.cluster is not None:
        said.append(f"A cluster has {_times(signature.cluster)} blocks.")
    if signature.dynamic_shared:
        size = signature.dynamic_bytes
        said.append(f"It uses {'' if size is None else f'{size} bytes of '}dynamic shared memory.")
    return f"/* {' '.join(said)} */\n"


def _times(dims: Sequence[int]) -> str:
    return "x".join(str(n) for n in dims)


def _rules(signature: KernelSignature) -> str:
    def dims(value: Sequence[int] | None) -> str:
        return f"{{{', '.join(map(str, value or (0, 0, 0)))}}}"

    most = 0 if signature.max_threads is None else prod(signature.max_threads)
    dynamic = f"{int(signature.dynamic_shared)}, {signature.dynamic_bytes or 0}"
    return f'{{"{signature.name}", {dims(signature.threads)}, {dims(signature.cluster)}, {most}, {dynamic}}}'


def _array(number: int, image: Image) -> str:
    """The bytes, aligned as the driver reads them."""
    data = image.data
    lines = [
        "    " + ", ".join(map(str, data[i : i + _BYTES_A_LINE])) + ",\n" for i in range(0, len(data), _BYTES_A_LINE)
    ]
    room = f"static const union {{\n    unsigned char bytes[{len(data)}];\n    uint64_t aligned;\n}}"
    return f"{room} image_{number} = {{{{\n{''.join(lines)}}}}};\n"


def _part(name: str) -> str:
    return files("ptxdsl.aot").joinpath(name).read_text(encoding="utf-8")
