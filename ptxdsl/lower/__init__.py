"""TIR to LLVM IR text; ``module.py`` is its entry point."""
