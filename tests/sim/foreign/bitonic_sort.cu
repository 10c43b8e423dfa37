// a bitonic sort of a block
// arch: sm_80
// launch: grid 1, block 256
// args: x=randint:i32:256:seed=26
// expect: x == np.sort(x)
extern "C" __global__ void bitonic_sort(int* x) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  for (int k = 2; k <= 256; k *= 2)
    for (int j = k / 2; j; j /= 2) {
      __syncthreads();
      int other = t ^ j;
      if (other > t && (s[t] > s[other]) == !(t & k)) { int v = s[t]; s[t] = s[other]; s[other] = v; }
    }
  __syncthreads();
  x[t] = s[t];
}
