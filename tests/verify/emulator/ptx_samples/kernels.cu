// Sources of kernels.ptx: nvcc -ptx -arch=sm_90a -lineinfo kernels.cu (file names cut to their last part).
#include <assert.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>
#include <stdio.h>
__device__ __forceinline__ float warp_sum(float v){ for(int o=16;o;o>>=1) v+=__shfl_xor_sync(0xffffffffu,v,o); return v;}
__device__ __forceinline__ float block_sum(float v){ __shared__ float part[32]; int w=threadIdx.x>>5,l=threadIdx.x&31; v=warp_sum(v); if(l==0) part[w]=v; __syncthreads(); v = l < (blockDim.x+31)/32 ? part[l]:0.f; v=warp_sum(v); return v;}
extern "C" __global__ void rms_norm_bf16(__nv_bfloat16* out, const __nv_bfloat16* __restrict__ in, const __nv_bfloat16* __restrict__ w, int hidden, float eps){
  const uint4* row=(const uint4*)(in+(size_t)blockIdx.x*hidden); uint4* orow=(uint4*)(out+(size_t)blockIdx.x*hidden);
  float s=0;
  for(int i=threadIdx.x;i<hidden/8;i+=blockDim.x){ uint4 v=row[i]; __nv_bfloat162* p=(__nv_bfloat162*)&v;
    #pragma unroll
    for(int k=0;k<4;k++){ float2 f=__bfloat1622float2(p[k]); s+=f.x*f.x; s+=f.y*f.y; } }
  s=block_sum(s); float r=rsqrtf(s/hidden+eps);
  for(int i=threadIdx.x;i<hidden/8;i+=blockDim.x){ uint4 v=row[i]; uint4 g=((const uint4*)w)[i]; __nv_bfloat162* p=(__nv_bfloat162*)&v; __nv_bfloat162* q=(__nv_bfloat162*)&g; uint4 o; __nv_bfloat162* oo=(__nv_bfloat162*)&o;
    #pragma unroll
    for(int k=0;k<4;k++){ float2 f=__bfloat1622float2(p[k]), gg=__bfloat1622float2(q[k]); oo[k]=__floats2bfloat162_rn(f.x*r*gg.x,f.y*r*gg.y);} orow[i]=o; }
}
extern "C" __global__ void softmax_f32(float* out, const float* in, int n){
  extern __shared__ float sm[]; __shared__ float red[32];
  int t=threadIdx.x; const float* x=in+(size_t)blockIdx.x*n; float m=-INFINITY;
  for(int i=t;i<n;i+=blockDim.x){ sm[i]=x[i]; m=fmaxf(m,sm[i]); }
  for(int o=16;o;o>>=1) m=fmaxf(m,__shfl_xor_sync(~0u,m,o));
  if((t&31)==0) red[t>>5]=m; __syncthreads();
  m=red[0]; for(int i=1;i<(blockDim.x+31)/32;i++) m=fmaxf(m,red[i]);
  __syncthreads();
  float s=0; for(int i=t;i<n;i+=blockDim.x){ float e=expf(sm[i]-m); sm[i]=e; s+=e; }
  s=warp_sum(s); if((t&31)==0) red[t>>5]=s; __syncthreads();
  s=0; for(int i=0;i<(blockDim.x+31)/32;i++) s+=red[i];
  for(int i=t;i<n;i+=blockDim.x) out[(size_t)blockIdx.x*n+i]=sm[i]/s;
}
extern "C" __global__ void quant_fp8(__nv_fp8_e4m3* out, float* scales, const __half* in, int n){
  const __half* x=in+(size_t)blockIdx.x*n; float m=0;
  for(int i=threadIdx.x;i<n;i+=blockDim.x) m=fmaxf(m,fabsf(__half2float(x[i])));
  __shared__ float part[32]; for(int o=16;o;o>>=1) m=fmaxf(m,__shfl_xor_sync(~0u,m,o)); if((threadIdx.x&31)==0) part[threadIdx.x>>5]=m; __syncthreads();
  if(threadIdx.x<32){ m=threadIdx.x<blockDim.x/32?part[threadIdx.x]:0.f; for(int o=16;o;o>>=1) m=fmaxf(m,__shfl_xor_sync(~0u,m,o)); if(threadIdx.x==0){ part[0]=m; scales[blockIdx.x]=fmaxf(m,1e-12f)/448.f; } } __syncthreads();
  float sc=fmaxf(part[0],1e-12f)/448.f;
  for(int i=threadIdx.x;i<n;i+=blockDim.x) out[(size_t)blockIdx.x*n+i]=__nv_fp8_e4m3(__half2float(x[i])/sc);
}
extern "C" __global__ void moe_hist(int* counts, const int* ids, int n){ extern __shared__ int h[]; for(int i=threadIdx.x;i<64;i+=blockDim.x) h[i]=0; __syncthreads(); for(int i=blockIdx.x*blockDim.x+threadIdx.x;i<n;i+=gridDim.x*blockDim.x) atomicAdd(&h[ids[i]],1); __syncthreads(); for(int i=threadIdx.x;i<64;i+=blockDim.x) if(h[i]) atomicAdd(&counts[i],h[i]); }
extern "C" __global__ void gbar(unsigned* ctr, float* data, float* out){ data[blockIdx.x*blockDim.x+threadIdx.x]=blockIdx.x; __threadfence(); __syncthreads(); if(threadIdx.x==0){ atomicAdd(ctr,1); while(*(volatile unsigned*)ctr<gridDim.x); __threadfence(); } __syncthreads(); float s=0; for(int i=0;i<gridDim.x;i++) s+=data[i*blockDim.x+threadIdx.x]; out[blockIdx.x*blockDim.x+threadIdx.x]=s; }
extern "C" __global__ void say(int n, double d){ if(threadIdx.x<n) printf("t %d %f %s\n", threadIdx.x, d, "x"); }
__device__ __noinline__ float ff(float x, int n){ float s=0; for(int i=0;i<n;i++) s+=sinf(x+i); return s;}
extern "C" __global__ void callee(float* o, float x){ o[threadIdx.x]=ff(x*threadIdx.x, threadIdx.x&3); }
struct P { int a; float b[3]; long long c; };
extern "C" __global__ void sw(int* o, P p){ int r; switch(threadIdx.x){case 0:r=p.a;break;case 1:r=(int)p.b[1];break;case 2:r=7;break;case 3: r=p.c;break;case 4:r=9*p.a;break;case 5:r=11;break; case 6: r= p.b[threadIdx.x-5]; break; default:r=-1;} int loc[16]; for(int i=0;i<16;i++) loc[i]=i*r; o[threadIdx.x]=loc[(threadIdx.x*5)&15]; }
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void grid_sync(int* data, int n) {
  auto g = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = i;
  g.sync();
  int v = data[(i + n / 2) % n];
  g.sync();
  data[i] += v;
}
extern "C" __global__ void checked(const int* x, int n) { assert(x[threadIdx.x] < n); }
extern "C" __global__ void cluster_sum(float* out) {
  __shared__ float mine; auto c = cg::this_cluster();
  if (threadIdx.x == 0) mine = c.block_rank() + 1; c.sync();
  float s = 0; for (unsigned r = 0; r < c.num_blocks(); r++) s += *c.map_shared_rank(&mine, r);
  c.sync(); if (threadIdx.x == 0) out[blockIdx.x] = s;
}
