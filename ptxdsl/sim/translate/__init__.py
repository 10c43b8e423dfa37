"""PTX to host code: one function a kernel, that runs one warp."""
