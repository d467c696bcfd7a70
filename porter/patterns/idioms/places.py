"""Patterns of functions, references, shared memory, parameters, declarations, for the catalogue."""

from __future__ import annotations

from porter.patterns.idioms.pattern import Assumption, Pattern

PATTERNS = (
    Pattern(
        "reference_parameter",
        "a device function with references, aggregates or captures is inlined: CuTeDSL passes scalars by value",
        "patterns/inline.py",
        """\
__device__ void update(float& best, int& index, float value, int at) {
  if (value > best) {
    best = value;
    index = at;
  }
}

__global__ void arg_max(const float* x, int* out, int n) {
  float best = x[0];
  int index = 0;
  for (int i = 1; i < n; ++i) update(best, index, x[i], i);
  out[0] = index;
}
""",
        ("best = value", "index = i"),
    ),
    Pattern(
        "reference_local",
        "a local reference becomes the place it names",
        "patterns/references.py",
        """\
__global__ void bump(float* x) {
  float& mine = x[threadIdx.x];
  mine += 1.0f;
  mine *= 2.0f;
}
""",
        ("[0] + 1.0", "[0] * 2.0"),
        assumes=(
            Assumption(
                "that the place stays the same while the reference lives",
                "proved",
                "an index or a pointer that could change is kept in a local",
            ),
        ),
    ),
    Pattern(
        "late_declaration",
        "a local that is set after its declaration is declared where it is set",
        "patterns/first_assignment.py",
        """\
__global__ void scale(float* x) {
  float f;
  __syncthreads();
  f = x[threadIdx.x] * 2.0f;
  x[threadIdx.x] = f;
}
""",
        ("f = x[tidx] * 2.0",),
        assumes=(
            Assumption(
                "that nothing reads the local before",
                "proved",
                "no statement between names it",
            ),
        ),
    ),
    Pattern(
        "shared_in_function",
        "a shared variable of a device function is declared by the kernel and passed down",
        "patterns/shared_params.py",
        """\
__device__ float share(float v) {
  __shared__ float box;
  if (threadIdx.x == 0) box = v;
  __syncthreads();
  return box;
}

__global__ void spread(float* x) { x[threadIdx.x] = share(x[0]); }
""",
        ("box = lib.shared(Float32, 1)", "share(x[0], box)"),
    ),
    Pattern(
        "dynamic_shared",
        "an extern __shared__ array is the start of the dynamic shared memory",
        "emit/statements/writer.py",
        """\
__global__ void stage(float* x) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
""",
        ("lib.dyn_shared(Float32",),
        assumes=(
            Assumption(
                "that the launch gives the bytes that the kernel uses",
                "case",
                "its shared memory, in bytes",
                "sanitizer",
            ),
        ),
    ),
    Pattern(
        "struct_parameter",
        "a kernel parameter that is a struct is passed member by member",
        "patterns/struct_params.py",
        """\
struct Params {
  float* out;
  const float* in;
  float scale;
};

__global__ void scaled(Params p) { p.out[threadIdx.x] = p.in[threadIdx.x] * p.scale; }
""",
        ("p_out: cute.Pointer", "p_scale: Float32"),
    ),
    Pattern(
        "kernel_reference",
        "a kernel parameter that is a reference is passed as a pointer",
        "patterns/struct_params.py",
        """\
__global__ void count(int& total) { atomicAdd(&total, 1); }
""",
        ("total: cute.Pointer",),
    ),
)
