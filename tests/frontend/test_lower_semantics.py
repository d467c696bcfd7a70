# ruff: noqa: E501 (C++ text)
"""What a lowering means, run: each kernel is compiled by the host compiler as written and again from its IR.

Both get the same inputs and must leave the same memory. This is where a silent wrong lowering (a lost conversion, an
effect out of order, a switch case that falls through wrongly) shows.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.frontend.ir_to_c import Printer
from tests.frontend.lowered import holes, lower_all

KERNELS = r"""
template <typename T, int N> struct Vec {
  T val[N];
  __device__ T& operator[](int i) { return val[i]; }
  __device__ const T& operator[](int i) const { return val[i]; }
  template <int K> __device__ T times(T x) const { return x * K + val[K % N]; }
};
struct Acc {
  int total = 5; int calls;
  __device__ Acc(int start) : calls(0) { total += start; }
  __device__ Acc& add(int v) { total += v; ++calls; return *this; }
  __device__ int operator()(int v) const { return total * v; }
};
struct Base { int id; __device__ int twice() const { return 2 * id; } };
struct Child : Base { int more; __device__ int sum() { id++; return twice() + more; } };
union Word { unsigned u; float f; unsigned char b[4]; };
__device__ const int table[5] = {3, 1, 4, 1, 5};
__device__ int& pick(int* p, int i) { return p[i & 7]; }
__device__ int bump(int& x, int by = 3) { x += by; return x; }
__device__ void swap2(int& a, int& b) { int t = a; a = b; b = t; }
__device__ int clampi(const int& v, int lo, int hi) { return v < lo ? lo : v > hi ? hi : v; }
template <typename F> __device__ void each(int* p, int n, F&& f) { for (int i = 0; i < n; i++) p[i] = f(p[i], i); }
template <int (*FN)(int&, int)> __device__ int through(int x) { return FN(x, 2) + x; }

__global__ void kernel(int* p, unsigned* u, float* f, unsigned char* c, short* s, long long* L, int n, unsigned m, float x) {
  // integer promotion, signedness, narrowing
  c[0] = c[1] + c[2]; c[3] *= 7; c[4] -= c[5] << 3; s[0] = s[1] * s[2]; s[3] += m; s[4] = -s[5];
  p[0] = c[6] - c[7]; p[1] = n / 3 + n % 3; p[2] = (-n) / 4 + (-n) % 4; p[3] = m > n; p[4] = (m - 5) / 2;
  u[0] = m / 3 - n; u[1] = ~c[0]; u[2] = m >> (n & 7); p[5] = n >> 2; p[6] = n << 3; u[3] = -m; p[7] = !n + !x + !!m;
  L[0] = n * 3ll + m; L[1] = m * n; L[2] = (long long)m * n; L[3] = n; L[4] = m; L[5] = -1; L[6] = 0xffffffffu + n;
  f[0] = n / 2 + x; f[1] = (int)(x * 3) ; f[2] = x * 2.5; f[3] = m; f[4] = (unsigned char)n; f[5] = 1 / 3 + 1 / 3.f;
  f[6] = x > 0 ? n : m; p[8] = x; u[4] = (unsigned)(n > 0 ? x + 4 : 4.f); p[9] = 'a' + true; f[7] = (float)1e10 * x;
  p[64] *= 2.5f; p[65] /= (m | 1u); s[6] /= 2.5f; c[8] += x + 9; L[8] += x; L[9] /= m | 1; f[9] += n; f[10] *= 1.5; u[7] -= 1.5f;
  p[66] %= 7u; p[67] >>= 3ll; s[7] <<= 2; c[9] >>= 1; p[68] = x * 2 > n; L[10] -= m; p[69] = -7 / (int)(2u + (n & 1)); p[70] = s[8] % -9;
  // effects in expressions
  int i = 2, j;
  p[i++] += ++i; p[10] = i; p[11] = (j = i + 1, j * i--); j = p[12] = i; p[13] = j++ + 2 * j;
  int* q = p + 14; *q++ = n; *q++ = *(q - 1) + 1; q[0] = q - p; *--q += 2;
  p[17] = (n > 2 && i++ > 0) || (j-- > 0 && ++i); p[18] = i * 10 + j; n > 3 ? i++ : j--; p[19] = i * 10 + j;
  i = j = 4; i += j -= 1; p[20] = i * 100 + j; i <<= 2; i ^= 5; i |= 64; i &= ~4; i %= 37; p[21] = i;
  p[22] = n > 0 ? bump(i) : bump(j, 7); p[23] = i + j; (n & 1 ? i : j) = 9; p[24] = i * 50 + j;
  pick(p, 25 + n) += 3; pick(p, n)++; p[26] = pick(p, 3) = 12; swap2(p[27], p[28]);
  // loops and jumps
  int sum = 0;
  for (int a = 0, b = 10; a < b; ++a, b -= 2) { if (a == 2) continue; sum += a * b; }
  while (i-- > 0) { if (i == 3) break; sum += i; }
  do { sum += j; if (sum & 1) continue; j--; } while (j-- > 0);
  for (;;) { if (++sum > 200 || sum % 7 == 0) break; }
  for (int a; (a = sum % 11) != 0; sum++) p[29] += a;
  for (int r = 0; r < 6; r++)
    switch ((n + r) % 6) {
      case 0: sum += 1;
      case 1: sum += 2; break;
      case 2: { if (r > 2) break; sum += 3; }
      case 3: if (n > 4) { sum *= 2; break; } else sum += 7;
      default: sum -= 1; if (r == 5) continue; sum += 2; break;
      case 5: sum ^= r;
    }
  p[30] = sum;
  int grid[2][3] = {1, 2, 3, 4}; for (auto& row : grid) for (int& v : row) v = v * 2 + sum % 5;
  for (const auto& row : grid) for (int v : row) p[31] += v;
  // records
  Vec<int, 4> v = {1, 2}; v[3] = n; v[2] += v[3]; Vec<int, 4> w = v; w[0] = 8; v = w; p[32] = v[0] + v[1] * v[2] - w.times<6>(3);
  Acc acc(n); acc.add(1).add(2).add(n); Acc copy = acc; copy.add(100); p[33] = acc.total + acc.calls * 1000 + copy(2) + Acc(3)(4);
  Child child{{3}, 4}; p[34] = child.sum() + child.sum(); Base only = child; only.id += 10; p[35] = only.id + child.id;
  Word word; word.f = x; p[36] = word.u; word.b[1] = 7; u[5] = word.u; auto [first, second] = copy; p[37] = first - second;
  Vec<float, 2> fv{}; fv[0] = n; reinterpret_cast<Vec<float, 2>*>(f)[4] = fv; p[38] = *(int*)&x; u[6] = reinterpret_cast<unsigned&>(x);
  // lambdas, functors, references
  int calls = 0; int& alias = calls; alias += 2; const int& fixed = n + 1;
  auto f1 = [&](int y) { calls++; return y + calls; };
  auto f2 = [=](int y) { return y * calls; };
  auto f3 = [calls, &sum](int y) mutable { calls += y; sum -= y; return calls; };
  calls = 20; p[39] = f1(2) * 3 + f1(n); p[40] = f2(3) + f3(1) + f3(2) * 2; p[41] = calls + sum + alias * fixed;
  each(p + 42, 3, [&](int y, int k) { return y + k * calls; }); each(p + 45, 2, [](int y, auto k) { return y - k; });
  p[47] = through<bump>(n); p[48] = clampi(n * 3, 2, 9) + clampi(sum, -5, 5); p[49] = table[n & 3] + table[4];
  bool flag = n; flag |= m > 3; flag ^= true; p[50] = flag + (flag ? 2 : 3); p[51] = sizeof(Vec<int, 4>) + alignof(double);
  const int size = 3 * 2; int arr[size] = {1}; arr[size - 1] = p[50]; p[52] = arr[0] + arr[5] + arr[3];
  int* null = nullptr; p[53] = null ? 1 : p && (q != null) ? 2 : 3; p[54] = q > p; p[55] = &arr[4] - arr;
  char ch = (char)(n * 50); p[56] = ch; ch++; p[57] = ch / 2; L[7] = ch; short sh = 40000; p[58] = sh; unsigned char uc = -1; p[59] = uc + 1;
  if (int t = n * 2; t > 4) p[60] = t; else p[60] = -t;
  if (int t = n - 3) p[61] = t;
  enum Mode { A, B = 4, C }; Mode mode = n > 3 ? C : B; p[62] = mode + B; p[63] = mode == C;
  if (n == 5) return;
  p[0]++;
}
"""

DRIVER = r"""
#include <cstdint>
#include <cstdio>
#include <cstring>
#define __device__
#define __global__
namespace original {
%(original)s
}
namespace ported {
template <class T> using P = T*;
template <class T, int N> struct A { T v[N]; };
%(lowered)s
}
struct State {
  int p[80]; unsigned u[16]; float f[16]; unsigned char c[16]; short s[16]; long long L[16];
};
int main() {
  int bad = 0;
  for (int n = -7; n < 40; n++) {
    State a, b;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 80; i++) a.p[i] = (i * 37 + n) %% 23 - 6;
    for (int i = 0; i < 16; i++) {
      a.u[i] = i * 77 + n; a.f[i] = i * .5f - n; a.c[i] = i * 45 + n; a.s[i] = i * 4001 - n * 97; a.L[i] = i - n;
    }
    memcpy(&b, &a, sizeof a);
    float x = n * .75f - 2;
    unsigned m = n * 2654435761u;
    original::kernel(a.p, a.u, a.f, a.c, a.s, a.L, n, m, x);
    ported::lowered(b.p, b.u, b.f, b.c, b.s, (int64_t*)b.L, n, m, x);
    for (int i = 0; i < 80; i++) if (a.p[i] != b.p[i]) printf("n=%%d p[%%d] %%d %%d\n", n, i, a.p[i], b.p[i]), bad++;
    for (int i = 0; i < 16; i++) {
      if (a.u[i] != b.u[i]) printf("n=%%d u[%%d] %%u %%u\n", n, i, a.u[i], b.u[i]), bad++;
      if (memcmp(&a.f[i], &b.f[i], 4)) printf("n=%%d f[%%d] %%g %%g\n", n, i, a.f[i], b.f[i]), bad++;
      if (a.c[i] != b.c[i]) printf("n=%%d c[%%d] %%d %%d\n", n, i, a.c[i], b.c[i]), bad++;
      if (a.s[i] != b.s[i]) printf("n=%%d s[%%d] %%d %%d\n", n, i, a.s[i], b.s[i]), bad++;
      if (a.L[i] != b.L[i]) printf("n=%%d L[%%d] %%lld %%lld\n", n, i, a.L[i], (long long)b.L[i]), bad++;
    }
  }
  return bad != 0;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a host C++ compiler")
def test_lowered_code_does_what_the_source_does(tmp_path: Path) -> None:
    kernel = lower_all(KERNELS)["kernel"]
    assert holes(kernel) == []
    source = tmp_path / "both.cpp"
    source.write_text(DRIVER % {"original": KERNELS, "lowered": Printer(kernel).program()})
    program = tmp_path / "both"
    # fwrapv, no-strict-aliasing: the comparison is about the lowering, not about undefined behaviour.
    flags = ["-std=c++17", "-O1", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w"]
    built = subprocess.run(["g++", *flags, str(source), "-o", str(program)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[:4000]
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stdout[:4000]
