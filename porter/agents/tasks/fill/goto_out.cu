// Leaves two nested loops at once: the first pair of set bits at a distance of three.
__global__ void goto_out(int* out, const int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int found = -1;
    for (int hi = 0; hi < 8; ++hi) {
      for (int lo = 0; lo < hi; ++lo) {
        if (((a[i] >> hi) & 1) && ((a[i] >> lo) & 1) && hi - lo == 3) {
          found = hi * 8 + lo;
          goto done;
        }
      }
    }
    {
    done:
      out[i] = found;
    }
  }
}
