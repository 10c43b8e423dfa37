// y = a x + y with a grid-stride loop
// arch: sm_80
// launch: grid 4, block 128
// args: n=i32:3000; a=f32:2.5; x=randn:f32:3000:seed=1; y=randn:f32:3000:seed=2
// expect: y == (np.float32(2.5) * x.astype(np.float64) + y).astype(np.float32)
extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
