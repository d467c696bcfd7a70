// A function that is called through a pointer, which the kernel sets once, by way of one without a type.
__device__ float square(float x) { return x * x; }
__global__ void function_pointer(float* out, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float (*f)(float) = (float (*)(float))(void*)square;
  if (i < n) out[i] = f(a[i]) + 1.0f;
}
