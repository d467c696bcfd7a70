// A small array from the heap of the device.
__global__ void heap_scratch(float* out, const float* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float* p = new float[2];
    p[0] = a[i];
    p[1] = a[i] * 3.0f;
    out[i] = p[i & 1] + p[0];
    delete[] p;
  }
}
