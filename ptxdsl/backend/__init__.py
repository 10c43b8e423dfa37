"""LLVM IR to PTX (``emit_ptx.py``), PTX to machine code (``assemble.py``)."""
