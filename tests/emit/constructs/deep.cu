// Expressions and chains deeper than one statement of a port may be: evaluated in parts, in C++'s order.
__device__ float halved(float x) { return x * 0.5f + 1.0f; }
__device__ int bumped(int* counter, int by) { return *counter += by; }
__global__ void deep_arithmetic(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  float v = f[t];
  f[t + 256] = f[t] - f[(t + 1) % 64] * 1.5f + f[(t + 2) % 64] * 2.5f - f[(t + 3) % 64] * 3.5f + f[(t + 4) % 64] * 4.5f
               - f[(t + 5) % 64] * 5.5f + f[(t + 6) % 64] * 6.5f - f[(t + 7) % 64] * 7.5f + f[(t + 8) % 64] * 8.5f - f[(t + 9) % 64] * 9.5f
               + f[(t + 10) % 64] * 10.5f - f[(t + 11) % 64] * 11.5f + f[(t + 12) % 64] * 12.5f - f[(t + 13) % 64] * 13.5f + f[(t + 14) % 64] * 14.5f
               - f[(t + 15) % 64] * 15.5f + f[(t + 16) % 64] * 16.5f - f[(t + 17) % 64] * 17.5f + f[(t + 18) % 64] * 18.5f - f[(t + 19) % 64] * 19.5f
               + f[(t + 20) % 64] * 20.5f - f[(t + 21) % 64] * 21.5f + f[(t + 22) % 64] * 22.5f - f[(t + 23) % 64] * 23.5f + f[(t + 24) % 64] * 24.5f
               - f[(t + 25) % 64] * 25.5f + f[(t + 26) % 64] * 26.5f - f[(t + 27) % 64] * 27.5f + f[(t + 28) % 64] * 28.5f - f[(t + 29) % 64] * 29.5f
               + f[(t + 30) % 64] * 30.5f - f[(t + 31) % 64] * 31.5f + f[(t + 32) % 64] * 32.5f - f[(t + 33) % 64] * 33.5f + f[(t + 34) % 64] * 34.5f
               - f[(t + 35) % 64] * 35.5f + f[(t + 36) % 64] * 36.5f - f[(t + 37) % 64] * 37.5f + f[(t + 38) % 64] * 38.5f - f[(t + 39) % 64] * 39.5f
               + f[(t + 40) % 64] * 40.5f - f[(t + 41) % 64] * 41.5f + f[(t + 42) % 64] * 42.5f - f[(t + 43) % 64] * 43.5f + f[(t + 44) % 64] * 44.5f
               - f[(t + 45) % 64] * 45.5f + f[(t + 46) % 64] * 46.5f - f[(t + 47) % 64] * 47.5f + f[(t + 48) % 64] * 48.5f - f[(t + 49) % 64] * 49.5f
               + f[(t + 50) % 64] * 50.5f - f[(t + 51) % 64] * 51.5f + f[(t + 52) % 64] * 52.5f - f[(t + 53) % 64] * 53.5f + f[(t + 54) % 64] * 54.5f
               - f[(t + 55) % 64] * 55.5f + f[(t + 56) % 64] * 56.5f - f[(t + 57) % 64] * 57.5f + f[(t + 58) % 64] * 58.5f - f[(t + 59) % 64] * 59.5f
               + f[(t + 60) % 64] * 60.5f - f[(t + 61) % 64] * 61.5f + f[(t + 62) % 64] * 62.5f - f[(t + 63) % 64] * 63.5f + f[(t + 64) % 64] * 64.5f
               - f[(t + 65) % 64] * 65.5f + f[(t + 66) % 64] * 66.5f - f[(t + 67) % 64] * 67.5f + f[(t + 68) % 64] * 68.5f - f[(t + 69) % 64] * 69.5f;
  f[t + 320] = (((((((((((((((((((((((((((((((((((((((((((((0.5f * v + 0.25f) * v + 1.25f) * v + 2.25f) * v + 3.25f) * v + 4.25f) * v + 5.25f) * v + 6.25f) * v + 0.25f)
                * v + 1.25f) * v + 2.25f) * v + 3.25f) * v + 4.25f) * v + 5.25f) * v + 6.25f) * v + 0.25f) * v + 1.25f)
                * v + 2.25f) * v + 3.25f) * v + 4.25f) * v + 5.25f) * v + 6.25f) * v + 0.25f) * v + 1.25f) * v + 2.25f)
                * v + 3.25f) * v + 4.25f) * v + 5.25f) * v + 6.25f) * v + 0.25f) * v + 1.25f) * v + 2.25f) * v + 3.25f)
                * v + 4.25f) * v + 5.25f) * v + 6.25f) * v + 0.25f) * v + 1.25f) * v + 2.25f) * v + 3.25f) * v + 4.25f)
                * v + 5.25f) * v + 6.25f) * v + 0.25f) * v + 1.25f) * v + 2.25f);
  unsigned s = u[t] + (u[(t + 0) % 64] >> 0) - (u[(t + 1) % 64] >> 1) ^ (u[(t + 2) % 64] >> 2) | (u[(t + 3) % 64] >> 3) & (u[(t + 4) % 64] >> 4)
                * (u[(t + 5) % 64] >> 0) + (u[(t + 6) % 64] >> 1) - (u[(t + 7) % 64] >> 2) ^ (u[(t + 8) % 64] >> 3) | (u[(t + 9) % 64] >> 4)
                & (u[(t + 10) % 64] >> 0) * (u[(t + 11) % 64] >> 1) + (u[(t + 12) % 64] >> 2) - (u[(t + 13) % 64] >> 3) ^ (u[(t + 14) % 64] >> 4)
                | (u[(t + 15) % 64] >> 0) & (u[(t + 16) % 64] >> 1) * (u[(t + 17) % 64] >> 2) + (u[(t + 18) % 64] >> 3) - (u[(t + 19) % 64] >> 4)
                ^ (u[(t + 20) % 64] >> 0) | (u[(t + 21) % 64] >> 1) & (u[(t + 22) % 64] >> 2) * (u[(t + 23) % 64] >> 3) + (u[(t + 24) % 64] >> 4)
                - (u[(t + 25) % 64] >> 0) ^ (u[(t + 26) % 64] >> 1) | (u[(t + 27) % 64] >> 2) & (u[(t + 28) % 64] >> 3) * (u[(t + 29) % 64] >> 4)
                + (u[(t + 30) % 64] >> 0) - (u[(t + 31) % 64] >> 1) ^ (u[(t + 32) % 64] >> 2) | (u[(t + 33) % 64] >> 3) & (u[(t + 34) % 64] >> 4)
                * (u[(t + 35) % 64] >> 0) + (u[(t + 36) % 64] >> 1) - (u[(t + 37) % 64] >> 2) ^ (u[(t + 38) % 64] >> 3) | (u[(t + 39) % 64] >> 4)
                & (u[(t + 40) % 64] >> 0) * (u[(t + 41) % 64] >> 1) + (u[(t + 42) % 64] >> 2) - (u[(t + 43) % 64] >> 3) ^ (u[(t + 44) % 64] >> 4)
                | (u[(t + 45) % 64] >> 0) & (u[(t + 46) % 64] >> 1) * (u[(t + 47) % 64] >> 2) + (u[(t + 48) % 64] >> 3) - (u[(t + 49) % 64] >> 4)
                ^ (u[(t + 50) % 64] >> 0) | (u[(t + 51) % 64] >> 1) & (u[(t + 52) % 64] >> 2) * (u[(t + 53) % 64] >> 3) + (u[(t + 54) % 64] >> 4)
                - (u[(t + 55) % 64] >> 0) ^ (u[(t + 56) % 64] >> 1) | (u[(t + 57) % 64] >> 2) & (u[(t + 58) % 64] >> 3) * (u[(t + 59) % 64] >> 4);
  u[t + 256] = s;
  f[t + 384] = halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(halved(v))))))))))))))))))))))))))))))))))))))));
  int count = t;
  i[t + 256] = bumped(&count, 0) - bumped(&count, 1) * 3 + bumped(&count, 2) - bumped(&count, 3) * 3 +
               bumped(&count, 4) - bumped(&count, 5) * 3 + bumped(&count, 6) - bumped(&count, 7) * 3 +
               bumped(&count, 8) - bumped(&count, 9) * 3 + bumped(&count, 10) - bumped(&count, 11) * 3 +
               bumped(&count, 12) - bumped(&count, 13) * 3 + bumped(&count, 14) - bumped(&count, 15) * 3 +
               bumped(&count, 16) - bumped(&count, 17) * 3 + bumped(&count, 18) - bumped(&count, 19) * 3 +
               bumped(&count, 20) - bumped(&count, 21) * 3 + bumped(&count, 22) - bumped(&count, 23) * 3 +
               bumped(&count, 24) - bumped(&count, 25) * 3 + bumped(&count, 26) - bumped(&count, 27) * 3 +
               bumped(&count, 28) - bumped(&count, 29) * 3 + bumped(&count, 30) - bumped(&count, 31) * 3 +
               bumped(&count, 32) - bumped(&count, 33) * 3 + bumped(&count, 34) - bumped(&count, 35) * 3 +
               bumped(&count, 36) - bumped(&count, 37) * 3 + bumped(&count, 38) - bumped(&count, 39) * 3 + count;
  i[t + 320] = - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ - ~ t;
  i[t + 384] = i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[i[t & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63] & 63];
}
__global__ void deep_choices(int* i, unsigned* u, float* f, int n) {
  int t = threadIdx.x;
  int k = i[t] & 63;
  i[t + 256] = k == 1 ? i[t + 1] / (k - 0) : k == 2 ? i[t + 2] / (k - 1) : k == 3 ? i[t + 3] / (k - 2) :
               k == 4 ? i[t + 4] / (k - 3) : k == 5 ? i[t + 5] / (k - 4) : k == 6 ? i[t + 6] / (k - 5) :
               k == 7 ? i[t + 7] / (k - 6) : k == 8 ? i[t + 8] / (k - 7) : k == 9 ? i[t + 9] / (k - 8) :
               k == 10 ? i[t + 10] / (k - 9) : k == 11 ? i[t + 11] / (k - 10) : k == 12 ? i[t + 12] / (k - 11) :
               k == 13 ? i[t + 13] / (k - 12) : k == 14 ? i[t + 14] / (k - 13) : k == 15 ? i[t + 15] / (k - 14) :
               k == 16 ? i[t + 16] / (k - 15) : k == 17 ? i[t + 17] / (k - 16) : k == 18 ? i[t + 18] / (k - 17) :
               k == 19 ? i[t + 19] / (k - 18) : k == 20 ? i[t + 20] / (k - 19) : k == 21 ? i[t + 21] / (k - 20) :
               k == 22 ? i[t + 22] / (k - 21) : k == 23 ? i[t + 23] / (k - 22) : k == 24 ? i[t + 24] / (k - 23) :
               k == 25 ? i[t + 25] / (k - 24) : k == 26 ? i[t + 26] / (k - 25) : k == 27 ? i[t + 27] / (k - 26) :
               k == 28 ? i[t + 28] / (k - 27) : k == 29 ? i[t + 29] / (k - 28) : k == 30 ? i[t + 30] / (k - 29) :
               k == 31 ? i[t + 31] / (k - 30) : k == 32 ? i[t + 32] / (k - 31) : k == 33 ? i[t + 33] / (k - 32) :
               k == 34 ? i[t + 34] / (k - 33) : k == 35 ? i[t + 35] / (k - 34) : k == 36 ? i[t + 36] / (k - 35) :
               k == 37 ? i[t + 37] / (k - 36) : k == 38 ? i[t + 38] / (k - 37) : k == 39 ? i[t + 39] / (k - 38) : -1;
  bool b = k > 3 || i[(t + 0) & 63] != 0 && i[(t + 1) & 63] != 3 && i[(t + 2) & 63] != 6 || i[(t + 3) & 63] != 9
            && i[(t + 4) & 63] != 12 && i[(t + 5) & 63] != 15 || i[(t + 6) & 63] != 18 && i[(t + 7) & 63] != 21
            && i[(t + 8) & 63] != 24 || i[(t + 9) & 63] != 27 && i[(t + 10) & 63] != 30 && i[(t + 11) & 63] != 33
            || i[(t + 12) & 63] != 36 && i[(t + 13) & 63] != 39 && i[(t + 14) & 63] != 42 || i[(t + 15) & 63] != 45
            && i[(t + 16) & 63] != 48 && i[(t + 17) & 63] != 51 || i[(t + 18) & 63] != 54 && i[(t + 19) & 63] != 57
            && i[(t + 20) & 63] != 60 || i[(t + 21) & 63] != 63 && i[(t + 22) & 63] != 66 && i[(t + 23) & 63] != 69
            || i[(t + 24) & 63] != 72 && i[(t + 25) & 63] != 75 && i[(t + 26) & 63] != 78 || i[(t + 27) & 63] != 81
            && i[(t + 28) & 63] != 84 && i[(t + 29) & 63] != 87 || i[(t + 30) & 63] != 90 && i[(t + 31) & 63] != 93
            && i[(t + 32) & 63] != 96 || i[(t + 33) & 63] != 99 && i[(t + 34) & 63] != 102 && i[(t + 35) & 63] != 105
            || i[(t + 36) & 63] != 108 && i[(t + 37) & 63] != 111 && i[(t + 38) & 63] != 114 || i[(t + 39) & 63] != 117
            && i[(t + 40) & 63] != 120 && i[(t + 41) & 63] != 123 || i[(t + 42) & 63] != 126 && i[(t + 43) & 63] != 129
            && i[(t + 44) & 63] != 132 || i[(t + 45) & 63] != 135 && i[(t + 46) & 63] != 138 && i[(t + 47) & 63] != 141
            || i[(t + 48) & 63] != 144 && i[(t + 49) & 63] != 147;
  i[t + 320] = b;
  // the port goes on beside this chain after some of its links
  if (k == 0) f[t + 256] = -f[t];
  else if (k == 1) { f[t + 256] = f[t] * 1.0f; }
  else if (k == 2) { f[t + 256] = f[t] * 2.0f; }
  else if (k == 3) { f[t + 256] = f[t] * 3.0f; }
  else if (k == 4) { f[t + 256] = f[t] * 4.0f; }
  else if (k == 5) { f[t + 256] = f[t] * 5.0f; }
  else if (k == 6) { f[t + 256] = f[t] * 6.0f; }
  else if (k == 7) f[t + 256] = -f[t];
  else if (k == 8) { f[t + 256] = f[t] * 8.0f; }
  else if (k == 9) { f[t + 256] = f[t] * 9.0f; }
  else if (k == 10) { f[t + 256] = f[t] * 10.0f; }
  else if (k == 11) { f[t + 256] = f[t] * 11.0f; }
  else if (k == 12) { f[t + 256] = f[t] * 12.0f; }
  else if (k == 13) { f[t + 256] = f[t] * 13.0f; }
  else if (k == 14) f[t + 256] = -f[t];
  else if (k == 15) { f[t + 256] = f[t] * 15.0f; }
  else if (k == 16) { f[t + 256] = f[t] * 16.0f; }
  else if (k == 17) { f[t + 256] = f[t] * 17.0f; }
  else if (k == 18) { f[t + 256] = f[t] * 18.0f; }
  else if (k == 19) { f[t + 256] = f[t] * 19.0f; }
  else if (k == 20) { f[t + 256] = f[t] * 20.0f; }
  else if (k == 21) f[t + 256] = -f[t];
  else if (k == 22) { f[t + 256] = f[t] * 22.0f; }
  else if (k == 23) { f[t + 256] = f[t] * 23.0f; }
  else if (k == 24) { f[t + 256] = f[t] * 24.0f; }
  else if (k == 25) { f[t + 256] = f[t] * 25.0f; }
  else if (k == 26) { f[t + 256] = f[t] * 26.0f; }
  else if (k == 27) { f[t + 256] = f[t] * 27.0f; }
  else if (k == 28) f[t + 256] = -f[t];
  else if (k == 29) { f[t + 256] = f[t] * 29.0f; }
  else if (k == 30) { f[t + 256] = f[t] * 30.0f; }
  else if (k == 31) { f[t + 256] = f[t] * 31.0f; }
  else if (k == 32) { f[t + 256] = f[t] * 32.0f; }
  else if (k == 33) { f[t + 256] = f[t] * 33.0f; }
  else if (k == 34) { f[t + 256] = f[t] * 34.0f; }
  else if (k == 35) f[t + 256] = -f[t];
  else if (k == 36) { f[t + 256] = f[t] * 36.0f; }
  else if (k == 37) { f[t + 256] = f[t] * 37.0f; }
  else if (k == 38) { f[t + 256] = f[t] * 38.0f; }
  else if (k == 39) { f[t + 256] = f[t] * 39.0f; }
  else f[t + 256] = 0.0f;
  int r = 0;
  for (int turn = 0; turn < 3; ++turn) {
    switch ((i[t] >> turn) & 63) {
      case 0: continue;
      case 1: r += 1; break;
      case 2: r += 2; break;
      case 3: r += 3; break;
      case 4: r += 4; break;
      case 5: if (t > 5) break; r ^= 5; break;
      case 6: r += 6; break;
      case 7: r += 7; break;
      case 8: r += 8; break;
      case 9: r += 9; break;
      case 10: continue;
      case 11: r += 11; break;
      case 12: r += 12; break;
      case 13: r += 13; break;
      case 14: r += 14; break;
      case 15: if (t > 15) break; r ^= 15; break;
      case 16: r += 16; break;
      case 17: r += 17; break;
      case 18: r += 18; break;
      case 19: r += 19; break;
      case 20: continue;
      case 21: r += 21; break;
      case 22: r += 22; break;
      case 23: r += 23; break;
      case 24: r += 24; break;
      case 25: if (t > 25) break; r ^= 25; break;
      case 26: r += 26; break;
      case 27: r += 27; break;
      case 28: r += 28; break;
      case 29: r += 29; break;
      case 30: continue;
      case 31: r += 31; break;
      case 32: r += 32; break;
      case 33: r += 33; break;
      case 34: r += 34; break;
      default: r -= 1;
    }
    r *= 3;
  }
  i[t + 384] = r;
  if ((k & 31) == 0) { u[t + 256] = 0; return; }
  else if ((k & 31) == 1) u[t + 320] = u[t] + 1;
  else if ((k & 31) == 2) u[t + 320] = u[t] + 2;
  else if ((k & 31) == 3) { u[t + 256] = 3; return; }
  else if ((k & 31) == 4) u[t + 320] = u[t] + 4;
  else if ((k & 31) == 5) u[t + 320] = u[t] + 5;
  else if ((k & 31) == 6) { u[t + 256] = 6; return; }
  else if ((k & 31) == 7) u[t + 320] = u[t] + 7;
  else if ((k & 31) == 8) u[t + 320] = u[t] + 8;
  else if ((k & 31) == 9) { u[t + 256] = 9; return; }
  else if ((k & 31) == 10) u[t + 320] = u[t] + 10;
  else if ((k & 31) == 11) u[t + 320] = u[t] + 11;
  else if ((k & 31) == 12) { u[t + 256] = 12; return; }
  else if ((k & 31) == 13) u[t + 320] = u[t] + 13;
  else if ((k & 31) == 14) u[t + 320] = u[t] + 14;
  else if ((k & 31) == 15) { u[t + 256] = 15; return; }
  else if ((k & 31) == 16) u[t + 320] = u[t] + 16;
  else if ((k & 31) == 17) u[t + 320] = u[t] + 17;
  else if ((k & 31) == 18) { u[t + 256] = 18; return; }
  else if ((k & 31) == 19) u[t + 320] = u[t] + 19;
  else if ((k & 31) == 20) u[t + 320] = u[t] + 20;
  else if ((k & 31) == 21) { u[t + 256] = 21; return; }
  else if ((k & 31) == 22) u[t + 320] = u[t] + 22;
  else if ((k & 31) == 23) u[t + 320] = u[t] + 23;
  else if ((k & 31) == 24) { u[t + 256] = 24; return; }
  else if ((k & 31) == 25) u[t + 320] = u[t] + 25;
  else if ((k & 31) == 26) u[t + 320] = u[t] + 26;
  else if ((k & 31) == 27) { u[t + 256] = 27; return; }
  else if ((k & 31) == 28) u[t + 320] = u[t] + 28;
  else if ((k & 31) == 29) u[t + 320] = u[t] + 29;
  u[t + 384] = 7;
}
