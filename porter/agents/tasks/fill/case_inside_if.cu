// A case label inside an if: the switch jumps into its middle.
__global__ void case_inside_if(int* out, const int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int x = a[i], r = 0;
    switch (x & 3) {
      case 0:
        r = 1;
        if (x > 40) {
      case 1:
          r += 20;
        }
        break;
      default:
        r = 300;
    }
    out[i] = r;
  }
}
