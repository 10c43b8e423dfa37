"""From a PTX module to what is executed: calls inlined, basic blocks, liveness, where variables lie."""
