// Warp, block, memory and synchronisation functions of device code.
#pragma once
#include "porter_half.h"
__device__ void __syncthreads();  // a device builtin of clang: it must not become host device
#pragma clang force_cuda_host_device begin
int __syncthreads_count(int); int __syncthreads_and(int); int __syncthreads_or(int);
void __syncwarp(unsigned mask = 0xffffffffu); void __threadfence(); void __threadfence_block(); void __threadfence_system();
void __nanosleep(unsigned); void __trap(); void __brkpt(); void __prof_trigger(int);
clock_t clock(); long long clock64();
int printf(const char*, ...); void* malloc(size_t); void free(void*);
void* memcpy(void*, const void*, size_t); void* memset(void*, int, size_t); void* memmove(void*, const void*, size_t);
int strcmp(const char*, const char*); size_t strlen(const char*);
void __assertfail(const char*, const char*, unsigned, const char*, size_t);
unsigned __activemask(); unsigned __ballot_sync(unsigned, int); int __all_sync(unsigned, int); int __any_sync(unsigned, int); int __uni_sync(unsigned, int);
template <class T> unsigned __match_any_sync(unsigned, T); template <class T> unsigned __match_all_sync(unsigned, T, int*);
unsigned __reduce_add_sync(unsigned, unsigned); int __reduce_add_sync(unsigned, int); unsigned __reduce_min_sync(unsigned, unsigned);
int __reduce_min_sync(unsigned, int); unsigned __reduce_max_sync(unsigned, unsigned); int __reduce_max_sync(unsigned, int);
unsigned __reduce_and_sync(unsigned, unsigned); unsigned __reduce_or_sync(unsigned, unsigned); unsigned __reduce_xor_sync(unsigned, unsigned);
#define PORTER_SHFL(T)                                                                                            \
  T __shfl_sync(unsigned, T, int, int = 32); T __shfl_up_sync(unsigned, T, unsigned, int = 32);                   \
  T __shfl_down_sync(unsigned, T, unsigned, int = 32); T __shfl_xor_sync(unsigned, T, int, int = 32);             \
  T __shfl(T, int, int = 32); T __shfl_up(T, unsigned, int = 32); T __shfl_down(T, unsigned, int = 32); T __shfl_xor(T, int, int = 32);
PORTER_SHFL(int) PORTER_SHFL(unsigned) PORTER_SHFL(long) PORTER_SHFL(unsigned long) PORTER_SHFL(long long) PORTER_SHFL(unsigned long long)
PORTER_SHFL(float) PORTER_SHFL(double) PORTER_SHFL(__half) PORTER_SHFL(__half2) PORTER_SHFL(__nv_bfloat16) PORTER_SHFL(__nv_bfloat162)
#undef PORTER_SHFL
// ---- cached loads and stores
#define PORTER_LDST(T)                                                                                            \
  T __ldg(const T*); T __ldcg(const T*); T __ldca(const T*); T __ldcs(const T*); T __ldlu(const T*); T __ldcv(const T*); \
  void __stwb(T*, T); void __stcg(T*, T); void __stcs(T*, T); void __stwt(T*, T);
#define PORTER_LDST_VEC(b) PORTER_LDST(b##2) PORTER_LDST(b##4)
PORTER_LDST(char) PORTER_LDST(signed char) PORTER_LDST(unsigned char) PORTER_LDST(short) PORTER_LDST(unsigned short)
PORTER_LDST(int) PORTER_LDST(unsigned) PORTER_LDST(long) PORTER_LDST(unsigned long) PORTER_LDST(long long) PORTER_LDST(unsigned long long)
PORTER_LDST(float) PORTER_LDST(double) PORTER_LDST(__half) PORTER_LDST(__half2) PORTER_LDST(__nv_bfloat16) PORTER_LDST(__nv_bfloat162)
PORTER_LDST_VEC(char) PORTER_LDST_VEC(uchar) PORTER_LDST_VEC(short) PORTER_LDST_VEC(ushort) PORTER_LDST_VEC(int) PORTER_LDST_VEC(uint)
PORTER_LDST(longlong2) PORTER_LDST(ulonglong2) PORTER_LDST(float2) PORTER_LDST(float4) PORTER_LDST(double2)
#undef PORTER_LDST
#undef PORTER_LDST_VEC
size_t __cvta_generic_to_shared(const void*); size_t __cvta_generic_to_global(const void*); size_t __cvta_generic_to_local(const void*);
void* __cvta_shared_to_generic(size_t); void* __cvta_global_to_generic(size_t); size_t __cvta_generic_to_grid_constant(const void*);
unsigned __isShared(const void*); unsigned __isGlobal(const void*); unsigned __isLocal(const void*); unsigned __isConstant(const void*);
void __cluster_barrier_arrive(); void __cluster_barrier_arrive_relaxed(); void __cluster_barrier_wait(); unsigned __cluster_query_shared_rank(const void*);
void* __cluster_map_shared_rank(const void*, unsigned); dim3 __clusterDim(); dim3 __clusterRelativeBlockIdx(); unsigned __clusterRelativeBlockRank();
dim3 __clusterGridDimInClusters(); dim3 __clusterIdx(); unsigned __clusterSizeInBlocks(); 
void* __nv_aligned_device_malloc(size_t, size_t);
void __builtin_assume_porter(bool);
void cudaGridDependencySynchronize(); void cudaTriggerProgrammaticLaunchCompletion();
void __pipeline_memcpy_async(void*, const void*, size_t, size_t = 0); void __pipeline_commit(); void __pipeline_wait_prior(size_t);
// ---- atomics (each also with _block and _system)
#define PORTER_ATOMIC_SCOPES(X, T) X(, T) X(_block, T) X(_system, T)
#define PORTER_ATOMIC_ADD(s, T) T atomicAdd##s(T*, T);
#define PORTER_ATOMIC_SUB(s, T) T atomicSub##s(T*, T);
#define PORTER_ATOMIC_EXCH(s, T) T atomicExch##s(T*, T);
#define PORTER_ATOMIC_MINMAX(s, T) T atomicMin##s(T*, T); T atomicMax##s(T*, T);
#define PORTER_ATOMIC_BITS(s, T) T atomicAnd##s(T*, T); T atomicOr##s(T*, T); T atomicXor##s(T*, T);
#define PORTER_ATOMIC_CAS(s, T) T atomicCAS##s(T*, T, T);
#define PORTER_ATOMIC_INC(s, T) T atomicInc##s(T*, T); T atomicDec##s(T*, T);
#define PORTER_EACH_INT(X) PORTER_ATOMIC_SCOPES(X, int) PORTER_ATOMIC_SCOPES(X, unsigned) PORTER_ATOMIC_SCOPES(X, unsigned long long)
PORTER_EACH_INT(PORTER_ATOMIC_ADD) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, float) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, double)
PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, __half) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, __half2)
PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, __nv_bfloat16) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, __nv_bfloat162)
PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, float2) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_ADD, float4)
PORTER_EACH_INT(PORTER_ATOMIC_SUB) PORTER_EACH_INT(PORTER_ATOMIC_EXCH) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_EXCH, float)
PORTER_EACH_INT(PORTER_ATOMIC_MINMAX) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_MINMAX, long long)
PORTER_EACH_INT(PORTER_ATOMIC_BITS) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_BITS, long long)
PORTER_EACH_INT(PORTER_ATOMIC_CAS) PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_CAS, unsigned short)
PORTER_ATOMIC_SCOPES(PORTER_ATOMIC_INC, unsigned)
#undef PORTER_EACH_INT
#undef PORTER_ATOMIC_SCOPES
#pragma clang force_cuda_host_device end
namespace std { using ::printf; using ::memset; using ::malloc; using ::free; using ::strlen; using ::strcmp; using ::memmove; }
