// a lock taken by every thread of a warp: independent thread scheduling
// arch: sm_80
// launch: grid 2, block 64
// args: lock=zeros:i32:1; out=zeros:i32:2
// expect: out == np.array([128, 127 * 64])
extern "C" __global__ void spin_lock(int* lock, volatile int* out) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      out[0] = out[0] + 1;
      out[1] = out[1] + blockIdx.x * 64 + threadIdx.x;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
