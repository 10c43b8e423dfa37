"""TIR to TIR: ring loops unrolled to one copy for each stage, branches between roles made uniform, code
moved out of loops."""
