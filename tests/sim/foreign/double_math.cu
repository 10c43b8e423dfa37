// double precision: exp, log, sin, sqrt, division
// arch: sm_80
// launch: grid 1, block 64
// args: x=rand:f64:64:seed=22:low=0.1:high=9; out=zeros:f64:5x64
// expect: out == np.stack([np.exp(x), np.log(x), np.sin(x), np.sqrt(x), 1 / x])
// tolerance: relative 1e-15 absolute 1e-15
extern "C" __global__ void double_math(const double* x, double* out) {
  int i = threadIdx.x;
  double v = x[i];
  out[i] = exp(v); out[64 + i] = log(v); out[128 + i] = sin(v); out[192 + i] = sqrt(v); out[256 + i] = 1 / v;
}
