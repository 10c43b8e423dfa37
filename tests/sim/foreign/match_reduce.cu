// match.any, redux and ballots: a sum for every key of a warp
// arch: sm_80
// launch: grid 2, block 32
// args: keys=randint:u32:64:seed=28:low=0:high=5; x=randint:u32:64:seed=29:low=0:high=100; out=zeros:u32:64
// expect: out == np.array([x.reshape(2, 32)[i // 32][keys.reshape(2, 32)[i // 32] == keys[i]].sum() for i in range(64)])
extern "C" __global__ void match_reduce(const unsigned* keys, const unsigned* x, unsigned* out) {
  int i = blockIdx.x * 32 + threadIdx.x;
  unsigned mates = __match_any_sync(~0u, keys[i]);
  out[i] = __reduce_add_sync(mates, x[i]);
}
