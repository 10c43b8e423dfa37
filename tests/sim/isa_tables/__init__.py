"""tcgen05 as the PTX ISA describes it, written down without a look at the simulator that it is compared with.

Each module is one topic and cites the sections that it was read from, as the ISA 9.2 numbers them (9.7.16.x; ISA 9.3
calls them 9.7.17.x, same text). Many of these sections say what they mean in a figure alone; then a second public
source is named that states the figure's content in words, numbers or CuTe layouts:

* CUTLASS: ``include/cute/arch/mma_sm100_desc.hpp``, ``include/cute/atom/{mma_traits_sm100_frag,copy_traits_sm100}.hpp``
* JAX: ``jax/experimental/mosaic/gpu/tcgen05.py``; Tilus: ``python/tilus/ir/layout/cuda/tcgen05/ldst.py``
* TileLang: ``src/layout/tcgen05_layout.cc``
* measured: github.com/sf-tensor/tcgen05, whose probes of a B200 are published (``hardware_validation``)

What no public text decides is in ``UNDECIDED`` and is tested by nothing: a test of it would hold a guess for a fact.
"""

from __future__ import annotations

from .containers import UNDECIDED as CONTAINERS_UNDECIDED
from .copies import UNDECIDED as COPIES_UNDECIDED
from .data_paths import UNDECIDED as DATA_PATHS_UNDECIDED
from .descriptors import UNDECIDED as DESCRIPTORS_UNDECIDED
from .rules import UNDECIDED as RULES_UNDECIDED
from .scale_factors import UNDECIDED as SCALE_FACTORS_UNDECIDED

UNDECIDED: tuple[str, ...] = (
    *DESCRIPTORS_UNDECIDED,
    *DATA_PATHS_UNDECIDED,
    *COPIES_UNDECIDED,
    *SCALE_FACTORS_UNDECIDED,
    *CONTAINERS_UNDECIDED,
    *RULES_UNDECIDED,
)
