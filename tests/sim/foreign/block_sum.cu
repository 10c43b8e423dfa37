// a block reduction with shared memory, one atomic a block
// arch: sm_80
// launch: grid 8, block 256
// args: n=i32:5000; x=randint:i32:5000:seed=3:low=-1000:high=1000; out=zeros:i32:1
// expect: out == x.sum()
extern "C" __global__ void block_sum(int n, const int* x, int* out) {
  __shared__ int part[256];
  int sum = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) sum += x[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step; step >>= 1) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (!threadIdx.x) atomicAdd(out, part[0]);
}
