// a histogram by shared and global atomics
// arch: sm_80
// launch: grid 4, block 128
// args: n=i32:6000; x=randint:u8:6000:seed=7; out=zeros:u32:256
// expect: out == np.bincount(x, minlength=256)
extern "C" __global__ void histogram(int n, const unsigned char* x, unsigned* out) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += 128) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) atomicAdd(&bins[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += 128) if (bins[i]) atomicAdd(&out[i], bins[i]);
}
