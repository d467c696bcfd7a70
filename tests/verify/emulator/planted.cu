// Kernels with one planted bug each; the line that must be reported carries `BUG kind`.

extern "C" __global__ void one_too_far(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n)
    out[i] = in[i];  // BUG out-of-bounds
}

extern "C" __global__ void sum_without_barrier(float* out, const float* in) {
  __shared__ float s[64];
  s[threadIdx.x] = in[threadIdx.x];
  float other =
      s[63 - threadIdx.x];  // BUG shared-race
  out[threadIdx.x] = other;
}

extern "C" __global__ void tree_without_syncwarp(float* out, const float* in) {
  __shared__ float s[32];
  s[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  for (int k = 16; k > 0; k /= 2) {
    if (threadIdx.x < k)
      s[threadIdx.x] += s[threadIdx.x + k];  // BUG shared-race
  }
  if (threadIdx.x == 0) out[0] = s[0];
}

extern "C" __global__ void reuse_without_barrier(float* out, const float* in) {
  __shared__ float s[64];
  float total = 0;
  for (int k = 0; k < 3; ++k) {
    s[threadIdx.x] = in[threadIdx.x] + k;  // BUG shared-race
    __syncthreads();
    total += s[(threadIdx.x + 32) % 64];
  }
  out[threadIdx.x] = total;
}

extern "C" __global__ void published_without_fence(float* out, float* data, volatile int* flag) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = 1.0f;
    __syncthreads();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    if (threadIdx.x == 0)
      while (*flag == 0) {
      }
    __syncthreads();
    out[threadIdx.x] =
        data[threadIdx.x];  // BUG missing-fence
  }
}

extern "C" __global__ void histogram_without_atomics(int* bins, const int* keys) {
  int key = keys[blockIdx.x * blockDim.x + threadIdx.x];
  if (threadIdx.x == 0)
    bins[key] += blockIdx.x + 1;  // BUG global-race
}

extern "C" __global__ void barrier_in_a_branch(float* out, const float* in) {
  float x = in[threadIdx.x];
  if (x > 0.0f)
    __syncthreads();  // BUG divergent-barrier
  else
    asm volatile("bar.sync 1;");  // BUG divergent-barrier
  out[threadIdx.x] = x;
}

extern "C" __global__ void index_checked(float* out, int n) {
  assert(threadIdx.x < n);  // BUG assert
  out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void accumulates_into_nothing(float* out, const float* in) {
  out[threadIdx.x] += in[threadIdx.x];  // BUG uninitialised-read
}

extern "C" __global__ void vector_at_any_offset(float* out, const float* in, int offset) {
  float4 v = *reinterpret_cast<const float4*>(in + offset);  // BUG misaligned
  out[threadIdx.x] = v.x + v.w;
}

extern "C" __global__ void writes_its_input(float* out, const float* in) {
  const_cast<float*>(in)[threadIdx.x] = 0.0f;  // BUG read-only-write
  out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void spins_for_good(volatile int* flag) {
  while (*flag == 0) {  // BUG deadlock
  }
}
