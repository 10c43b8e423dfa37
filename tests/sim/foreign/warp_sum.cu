// a reduction by shuffles, the last block finishes (threadfence)
// arch: sm_80
// launch: grid 6, block 128
// args: n=i32:4000; x=randint:u32:4000:seed=4; part=zeros:u32:6; ticket=zeros:u32:1; out=zeros:u32:1
// expect: out == x.sum(dtype=np.uint64) % 2**32
extern "C" __global__ void warp_sum(int n, const unsigned* x, volatile unsigned* part, unsigned* ticket, unsigned* out) {
  __shared__ unsigned warps[4];
  __shared__ bool last;
  unsigned sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) sum += x[i];
  for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    part[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
    __threadfence();
    last = atomicInc(ticket, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    unsigned all = 0;
    for (int i = 0; i < gridDim.x; ++i) all += part[i];
    *out = all;
  }
}
