// Transposes tiles through shared memory without padding: 32-way bank conflicts.
__global__ void transpose_conflicts(float* out, const float* a, int rows, int cols) {
  __shared__ float tile[32][32];
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (c < cols && r + k < rows) tile[threadIdx.y + k][threadIdx.x] = a[(r + k) * cols + c];
  __syncthreads();
  int oc = blockIdx.y * 32 + threadIdx.x, orow = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (oc < rows && orow + k < cols) out[(orow + k) * rows + oc] = tile[threadIdx.x][threadIdx.y + k];
}
