"""TIR to LLVM IR text; ``module.py`` is its door."""
