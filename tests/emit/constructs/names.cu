// Names that mean several things: what is known of one variable says nothing of the next one.

__device__ int small(const int* p, int at) { return p[at] % 1000; }

__global__ void index_then_number(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, sum = 0;
  for (int k = t; k < n; k += 16) sum += small(i, k);
  if (t < n) {
    int k = small(i, t + 64);
    i[t] = k / 4 + k % 3 + sum;
  }
  for (int m = 0; m < n; m++) sum += m;
  {
    int m = small(i, t + 128) - 7;
    i[t + 256] = m / 2 - m % 5 + sum;
  }
}

__global__ void unsigned_then_large(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  unsigned sum = 0;
  for (unsigned k = 0; k < 40u; k++) sum += u[k];
  unsigned limit = u[t];
  {
    unsigned k = u[t + 64];
    i[t] = (k < limit) + (k >> 3 > limit >> 5) * 2;
    u[t] = k % 7u + sum;
  }
  {
    const unsigned limit = threadIdx.x & 15;
    u[t + 256] = limit / 3u;
  }
  if (u[t + 128] > 9u) {
    const unsigned limit = u[t + 128] - 1u;
    u[t + 320] = limit / 3u + (limit > 2147483648u);
  }
}

__global__ void constant_then_value(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  {
    const int width = 6;
    i[t] = small(i, t) / width;
  }
  {
    int width = small(i, t + 64) & 7;
    for (int k = 0; k < width; k++) i[t + 256] += k * 3;
  }
  {
    const long long width = 3;
    i[t + 320] = (int)(small(i, t + 128) % width);
  }
  if (i[t + 192] > 0) {
    long long width = small(i, t + 192) * 5ll;
    i[t + 384] = (int)(width >> 3);
  }
}

__device__ int folded(int value, int& total) {
  for (int k = 0; k < 6; k++) total += k;
  int step = value & 3;
  total += step / 2;
  return total;
}

__device__ int halved(int& total, int value) {
  int k = value - 40;
  int step = k / 2;
  total -= step % 3;
  return step;
}

__global__ void names_of_inlined_functions(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, total = 0;
  int a = folded(small(i, t), total);
  int z = small(i, t + 64);
  int b = halved(total, z);
  i[t] = a + b * 3 + z / 8;
  i[t + 256] = folded(total, z) + z % 4;
}

__device__ void moved(int& place, int kept) {
  place = kept + 1;
  place += kept;
}

__device__ void stored(int* place, int kept, int& other) {
  *place = 5;
  other = kept - *place;
}

__device__ void at_index(int& element, int& index) {
  index = 3;
  element = 77;
}

__global__ void arguments_that_are_changed(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int a = small(i, t), b = 0, k = 1;
  moved(a, a);
  stored(&b, b, k);
  int list[4] = {1, 2, 3, 4};
  int at = t & 1;
  at_index(list[at], at);
  auto twice = [&](int v) {
    a = 9;
    return v + a;
  };
  int c = twice(a);
  i[t] = a + b * 10 + k * 100 + c * 1000;
  i[t + 256] = list[0] + 5 * list[1] + 7 * list[2] + 11 * list[3] + at;
}

__global__ void wrapping_constants(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  unsigned sum = u[t];
  for (unsigned k = 0; k < 6; k++) sum += (k - 4u) / 3u + (unsigned char)(k - 3u) / 2;
  const unsigned below = 3u, above = below - 5u;
  const unsigned char narrow = (unsigned char)(below - 7u);
  u[t] = sum + above / 7u + ~below / 9u;
  i[t] = narrow / 2 + (int)(-below / 4u) + (short)(below << 14) / 3;
  unsigned long long wide = ~0ull;
  wide = wide * 3ull + 7ull;
  u[t + 64] = (unsigned)(wide >> 33);
}

__global__ void signed_to_wider_unsigned(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  unsigned long long a = i[t];
  signed char byte = (signed char)i[t + 64];
  short middle = (short)i[t + 128];
  unsigned long long b = byte;
  unsigned c = byte;
  unsigned short d = byte;
  unsigned e = middle;
  u[t] = (unsigned)(a >> 32) + (unsigned)(b >> 40);
  u[t + 64] = c + d;
  u[t + 128] = e / 3u;
  i[t] = (int)((unsigned long long)(small(i, t) - 5) / 3ull >> 20);
}

__global__ void unsigned_least_and_most(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  unsigned long long wide = (unsigned long long)u[t] << 32 | 1;
  u[t + 64] = max(3u, u[t]) / 5u + min(7u, u[t + 64]);
  u[t + 128] = (unsigned)(max(9ull, wide) >> 30) + (unsigned)min(wide, 5ull);
  unsigned best = 11u;
  best = max(best, u[t]);
  u[t] = best;
}

__global__ void loops_that_change_their_end(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, sum = 0;
  int end = 6;
  int* p = &end;
  for (int k = 0; k < end; k++) {
    sum += k;
    if (i[t] > 0) *p = 3;
  }
  int j = 0;
  for (int k = 0; k < 8; k++, j += 2) {
    if (k == (i[t] & 7)) break;
    sum += k;
  }
  for (int k = 9; k > 0; k += -2) sum = sum * 3 + k;
  for (int k = n & 7; k >= 0; k -= 3) sum = sum * 3 + k;
  i[t] = sum + j * 1000;
}

__device__ int first_above(const int* p, int limit, int& turns) {
  for (int k = 0; k < 6; k++) {
    for (int m = 3; m-- > 0;) {
      turns++;
      if (small(p, k * 4 + m) > limit) return k;
    }
  }
  return -1;
}

__global__ void flags_of_nested_loops(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, sum = 0, turns = 0, fuel = 4;
  do {
    if (i[t] > 0 || fuel < 3) {
      sum = sum * 3 + 1;
      for (int j = 5; j-- > 0;) sum += j;
    } else if (i[t + 64] > 0) {
      break;
    }
  } while (--fuel > 0 && t >= 7);
  i[t] = sum;
}

__global__ void flags_of_inlined_functions(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x, sum = 0, turns = 0;
  while (true) {
    int found = first_above(i, 200 - sum % 7, turns);
    if (turns > 20) break;
    sum += found;
    for (int j = 2; j-- > 0;) {
      if (j == (i[t] & 1)) continue;
      sum += j * 5;
    }
    turns++;
  }
  i[t] = sum + turns * 1000;
}

__device__ int of_neighbour(int v) {
  __shared__ int part[64];
  {
    int part = v / 2;
    v += part;
  }
  {
    int part = v / 3;
    v += part;
  }
  part[threadIdx.x] = v;
  __syncthreads();
  return part[threadIdx.x ^ 1];
}

__global__ void names_of_shared_arrays(int* i, unsigned* u, float* f, int n) {
  __shared__ int part[64];
  part[threadIdx.x] = small(i, threadIdx.x);
  __syncthreads();
  i[threadIdx.x] = of_neighbour(part[63 - threadIdx.x]);
}
