"""Loading and launching kernels through the CUDA driver. Nothing here imports the compiler's stages."""
