// Integer functions of CUDA that work on the halfwords or bytes of a word, and those of three operands, as what they
// compute. Lowered like user code.
#pragma once
#include "porter_attributes.h"
#include "porter_math.h"
#pragma clang force_cuda_host_device begin
// A lane as a signed or unsigned number, and the lanes of a result. M: all bits of a lane.
#define PORTER_S(v, bits, k) ((int)((v) << (32 - (bits) * ((k) + 1))) >> (32 - (bits)))
#define PORTER_U(v, bits, k) (((v) >> ((bits) * (k))) & M)
#define PORTER_LANE(T, get, bits, k, expr)                                        \
  {                                                                               \
    const T x = get(a, bits, k), y = get(b, bits, k);                             \
    r |= ((unsigned)(expr) & M) << ((bits) * (k));                                \
  }
#define PORTER_LANES2(T, get, expr) PORTER_LANE(T, get, 16, 0, expr) PORTER_LANE(T, get, 16, 1, expr)
#define PORTER_LANES4(T, get, expr)                                                           \
  PORTER_LANE(T, get, 8, 0, expr) PORTER_LANE(T, get, 8, 1, expr) PORTER_LANE(T, get, 8, 2, expr) \
  PORTER_LANE(T, get, 8, 3, expr)
#define PORTER_WORDS(name, T, get, expr)                                                                              \
  PORTER_BODY inline unsigned name##2(unsigned a, unsigned b) { const unsigned M = 0xFFFFu; unsigned r = 0; PORTER_LANES2(T, get, expr) return r; } \
  PORTER_BODY inline unsigned name##4(unsigned a, unsigned b) { const unsigned M = 0xFFu; unsigned r = 0; PORTER_LANES4(T, get, expr) return r; }
#define PORTER_SIGNED(name, expr) PORTER_WORDS(name, int, PORTER_S, expr)
#define PORTER_UNSIGNED(name, expr) PORTER_WORDS(name, unsigned, PORTER_U, expr)
#define PORTER_MOST (int)(M >> 1)
#define PORTER_CLAMP(e) ((e) > PORTER_MOST ? PORTER_MOST : (e) < -PORTER_MOST - 1 ? -PORTER_MOST - 1 : (e))
PORTER_SIGNED(__vadd, x + y)
PORTER_SIGNED(__vsub, x - y)
PORTER_SIGNED(__vaddss, PORTER_CLAMP(x + y))
PORTER_SIGNED(__vsubss, PORTER_CLAMP(x - y))
PORTER_UNSIGNED(__vaddus, x + y > M ? M : x + y)
PORTER_UNSIGNED(__vsubus, x > y ? x - y : 0u)
PORTER_SIGNED(__vmaxs, x > y ? x : y)
PORTER_SIGNED(__vmins, x < y ? x : y)
PORTER_UNSIGNED(__vmaxu, x > y ? x : y)
PORTER_UNSIGNED(__vminu, x < y ? x : y)
PORTER_SIGNED(__vavgs, (x + y + (x + y >= 0)) >> 1)
PORTER_UNSIGNED(__vavgu, (x + y + 1u) >> 1)
PORTER_UNSIGNED(__vhaddu, (x + y) >> 1)
PORTER_SIGNED(__vabsdiffs, x > y ? x - y : y - x)
PORTER_UNSIGNED(__vabsdiffu, x > y ? x - y : y - x)
#define PORTER_COMPARE(name, sign, get, op)         \
  get(__vcmp##name##sign, x op y ? M : 0u)          \
  get(__vset##name##sign, x op y ? 1u : 0u)
PORTER_COMPARE(eq, , PORTER_UNSIGNED, ==)
PORTER_COMPARE(ne, , PORTER_UNSIGNED, !=)
PORTER_COMPARE(gt, s, PORTER_SIGNED, >)
PORTER_COMPARE(ge, s, PORTER_SIGNED, >=)
PORTER_COMPARE(lt, s, PORTER_SIGNED, <)
PORTER_COMPARE(le, s, PORTER_SIGNED, <=)
PORTER_COMPARE(gt, u, PORTER_UNSIGNED, >)
PORTER_COMPARE(ge, u, PORTER_UNSIGNED, >=)
PORTER_COMPARE(lt, u, PORTER_UNSIGNED, <)
PORTER_COMPARE(le, u, PORTER_UNSIGNED, <=)
#undef PORTER_COMPARE
#define PORTER_OF_ONE(name, expr)                                                                                      \
  PORTER_BODY inline unsigned name##2(unsigned a) { const unsigned M = 0xFFFFu, b = a; unsigned r = 0; PORTER_LANES2(int, PORTER_S, expr) return r; } \
  PORTER_BODY inline unsigned name##4(unsigned a) { const unsigned M = 0xFFu, b = a; unsigned r = 0; PORTER_LANES4(int, PORTER_S, expr) return r; }
PORTER_OF_ONE(__vabs, x < 0 ? -y : y)
PORTER_OF_ONE(__vabsss, x < 0 ? PORTER_CLAMP(-y) : y)
PORTER_OF_ONE(__vneg, -(x + y) / 2)
PORTER_OF_ONE(__vnegss, PORTER_CLAMP(-(x + y) / 2))
#undef PORTER_OF_ONE
// Sums of absolute differences.
#define PORTER_SAD(T, get, bits, k) (get(a, bits, k) > get(b, bits, k) ? get(a, bits, k) - get(b, bits, k) : get(b, bits, k) - get(a, bits, k))
#define PORTER_SADS(name, T, get)                                                                                      \
  PORTER_BODY inline unsigned name##2(unsigned a, unsigned b) { const unsigned M = 0xFFFFu; return (unsigned)(PORTER_SAD(T, get, 16, 0) + PORTER_SAD(T, get, 16, 1)); } \
  PORTER_BODY inline unsigned name##4(unsigned a, unsigned b) { const unsigned M = 0xFFu; return (unsigned)(PORTER_SAD(T, get, 8, 0) + PORTER_SAD(T, get, 8, 1) + PORTER_SAD(T, get, 8, 2) + PORTER_SAD(T, get, 8, 3)); }
PORTER_SADS(__vsads, int, PORTER_S)
PORTER_SADS(__vsadu, unsigned, PORTER_U)
#undef PORTER_SADS
#undef PORTER_SAD
// Maxima and minima of sums and of three numbers, whole words and pairs of halfwords, also with 0.
#define PORTER_MAX(x, y) ((x) > (y) ? (x) : (y))
#define PORTER_MIN(x, y) ((x) < (y) ? (x) : (y))
#define PORTER_PAIR3(T, get, expr0)                                               \
  {                                                                               \
    const unsigned M = 0xFFFFu;                                                   \
    unsigned r = 0;                                                               \
    { const T x = get(a, 16, 0), y = get(b, 16, 0), z = get(c, 16, 0); r |= (unsigned)(expr0) & M; }         \
    { const T x = get(a, 16, 1), y = get(b, 16, 1), z = get(c, 16, 1); r |= ((unsigned)(expr0) & M) << 16; } \
    return r;                                                                     \
  }
#define PORTER_THREE(name, PICK)                                                                                       \
  PORTER_BODY inline int __vi##name##3_s32(int a, int b, int c) { return PICK(PICK(a, b), c); }                        \
  PORTER_BODY inline unsigned __vi##name##3_u32(unsigned a, unsigned b, unsigned c) { return PICK(PICK(a, b), c); }    \
  PORTER_BODY inline int __vi##name##3_s32_relu(int a, int b, int c) { const int m = PICK(PICK(a, b), c); return PORTER_MAX(m, 0); } \
  PORTER_BODY inline unsigned __vi##name##3_s16x2(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(int, PORTER_S, PICK(PICK(x, y), z)) \
  PORTER_BODY inline unsigned __vi##name##3_u16x2(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(unsigned, PORTER_U, PICK(PICK(x, y), z)) \
  PORTER_BODY inline unsigned __vi##name##3_s16x2_relu(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(int, PORTER_S, PORTER_MAX(PICK(PICK(x, y), z), 0)) \
  PORTER_BODY inline int __vi##name##_s32_relu(int a, int b) { const int m = PICK(a, b); return PORTER_MAX(m, 0); }    \
  PORTER_BODY inline unsigned __vi##name##_s16x2_relu(unsigned a, unsigned b) { const unsigned c = 0; PORTER_PAIR3(int, PORTER_S, PORTER_MAX(PICK(x, y), z)) } \
  PORTER_BODY inline int __viadd##name##_s32(int a, int b, int c) { const int s = (int)((unsigned)a + (unsigned)b); return PICK(s, c); } \
  PORTER_BODY inline unsigned __viadd##name##_u32(unsigned a, unsigned b, unsigned c) { const unsigned s = a + b; return PICK(s, c); } \
  PORTER_BODY inline int __viadd##name##_s32_relu(int a, int b, int c) { const int s = (int)((unsigned)a + (unsigned)b); const int m = PICK(s, c); return PORTER_MAX(m, 0); } \
  PORTER_BODY inline unsigned __viadd##name##_s16x2(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(int, PORTER_S, PICK((int)((unsigned)(x + y) << 16) >> 16, z)) \
  PORTER_BODY inline unsigned __viadd##name##_u16x2(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(unsigned, PORTER_U, PICK((x + y) & M, z)) \
  PORTER_BODY inline unsigned __viadd##name##_s16x2_relu(unsigned a, unsigned b, unsigned c) PORTER_PAIR3(int, PORTER_S, PORTER_MAX(PICK((int)((unsigned)(x + y) << 16) >> 16, z), 0))
PORTER_THREE(max, PORTER_MAX)
PORTER_THREE(min, PORTER_MIN)
#define PORTER_WHICH(name, PICK, op)                                                                                   \
  PORTER_BODY inline int __vib##name##_s32(int a, int b, bool* first) { *first = a op b; return PICK(a, b); }          \
  PORTER_BODY inline unsigned __vib##name##_u32(unsigned a, unsigned b, bool* first) { *first = a op b; return PICK(a, b); } \
  PORTER_BODY inline unsigned __vib##name##_s16x2(unsigned a, unsigned b, bool* high, bool* low) {                     \
    *high = PORTER_S(a, 16, 1) op PORTER_S(b, 16, 1); *low = PORTER_S(a, 16, 0) op PORTER_S(b, 16, 0); return __v##name##s2(a, b); } \
  PORTER_BODY inline unsigned __vib##name##_u16x2(unsigned a, unsigned b, bool* high, bool* low) {                     \
    const unsigned M = 0xFFFFu; *high = PORTER_U(a, 16, 1) op PORTER_U(b, 16, 1); *low = PORTER_U(a, 16, 0) op PORTER_U(b, 16, 0); return __v##name##u2(a, b); }
PORTER_WHICH(max, PORTER_MAX, >=)
PORTER_WHICH(min, PORTER_MIN, <=)
#undef PORTER_WHICH
#undef PORTER_THREE
#undef PORTER_PAIR3
#undef PORTER_MIN
#undef PORTER_MAX
#undef PORTER_CLAMP
#undef PORTER_MOST
#undef PORTER_UNSIGNED
#undef PORTER_SIGNED
#undef PORTER_WORDS
#undef PORTER_LANES4
#undef PORTER_LANES2
#undef PORTER_LANE
#undef PORTER_U
#undef PORTER_S
#pragma clang force_cuda_host_device end
