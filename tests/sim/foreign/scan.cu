// an exclusive prefix sum of a block, by warps
// arch: sm_80
// launch: grid 1, block 512
// args: x=randint:i32:512:seed=5:low=-50:high=50; out=zeros:i32:512
// expect: out == np.cumsum(x) - x
extern "C" __global__ void scan(const int* x, int* out) {
  __shared__ int totals[16];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = x[threadIdx.x], sum = mine;
  for (int d = 1; d < 32; d *= 2) { int v = __shfl_up_sync(~0u, sum, d); if (lane >= d) sum += v; }
  if (lane == 31) totals[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    int t = lane < 16 ? totals[lane] : 0, s = t;
    for (int d = 1; d < 16; d *= 2) { int v = __shfl_up_sync(~0u, s, d); if (lane >= d) s += v; }
    if (lane < 16) totals[lane] = s - t;
  }
  __syncthreads();
  out[threadIdx.x] = totals[warp] + sum - mine;
}
