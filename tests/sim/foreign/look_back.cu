// a single-pass scan: blocks wait for their predecessors by spinning on flags
// arch: sm_80
// launch: grid 12, block 64
// args: x=randint:i32:768:seed=6:low=-9:high=10; flags=zeros:i32:12; sums=zeros:i32:12; out=zeros:i32:768
// expect: out == np.cumsum(x)
extern "C" __global__ void look_back(const int* x, int* flags, int* sums, int* out) {
  __shared__ int s[64];
  __shared__ int before;
  int i = blockIdx.x * 64 + threadIdx.x;
  s[threadIdx.x] = x[i];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    int v = threadIdx.x >= d ? s[threadIdx.x - d] : 0;
    __syncthreads();
    s[threadIdx.x] += v;
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    before = 0;
    if (blockIdx.x) {
      while (*(volatile int*)&flags[blockIdx.x - 1] == 0) {}
      __threadfence();
      before = *(volatile int*)&sums[blockIdx.x - 1];
    }
    sums[blockIdx.x] = before + s[63];
    __threadfence();
    atomicExch(&flags[blockIdx.x], 1);
  }
  __syncthreads();
  out[i] = before + s[threadIdx.x];
}
