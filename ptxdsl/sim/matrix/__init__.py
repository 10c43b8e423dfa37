"""Matrix instructions of warps and warpgroups: mma, wmma, wgmma, ldmatrix."""
