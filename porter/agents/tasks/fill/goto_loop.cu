// Halves a number until it is small; the loop is written with goto.
__global__ void goto_loop(int* out, const int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int x = a[i], steps = 0;
    for (;;) {
    again:
      if (x <= 100) break;
      x = x / 2;
      ++steps;
      goto again;
    }
    out[i] = x * 32 + steps;
  }
}
