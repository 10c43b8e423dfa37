// exp, log, sin, cos, pow, rsqrt of the fast and the precise kind
// arch: sm_80
// launch: grid 1, block 128
// args: x=rand:f32:128:seed=21:low=0.1:high=9; out=zeros:f32:7x128
// expect: out == (lambda v: np.stack([np.exp(v), np.log(v), np.sin(v), np.cos(v), v ** 1.7, 1 / np.sqrt(v), np.tanh(v)]))(x.astype(np.float64))
// tolerance: relative 1e-5 absolute 2e-6
extern "C" __global__ void special_functions(const float* x, float* out) {
  int i = threadIdx.x;
  float v = x[i];
  out[i] = expf(v); out[128 + i] = logf(v); out[256 + i] = sinf(v); out[384 + i] = cosf(v);
  out[512 + i] = powf(v, 1.7f); out[640 + i] = rsqrtf(v); out[768 + i] = tanhf(v);
}
