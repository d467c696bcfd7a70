"""The case of a kernel: `<name>.case.toml`, the contract a port is verified against. The agent may never change it.

```toml
schema = 1
kernel = "rms_norm_kernel"              # required
source = "rms_norm.cu"                  # default: the file beside it with the same stem

[[instances]]                           # template arguments; at least two for a template. Omit for a plain kernel.
args = ["__nv_bfloat16", 8]             # C++ text or numbers/bools, in order
when = "hidden % 8 == 0 and aligned(input, 16)"   # the torch-facing function takes the first instance whose `when` holds

[sizes]                                 # named sizes -> the values the verifier combines; at least one
tokens = [0, 1, 7, 33]
hidden = [64, 768, 4096]
# a derived size is an expression string: blocks = "ceil_div(tokens, 4)"
[[shapes]]                              # optional: extra/explicit points (all base sizes given); with `only_shapes = true`
tokens = 3                              # at top level, [sizes] is not combined
hidden = 12288

[[buffers]]                             # one per pointer parameter of the kernel, by its name
name = "input"
dtype = "scalar_t"                      # a template type parameter's name, or bf16 f16 f32 f64 i8 u8 i32 u32 i64 u64 e4m3 e5m2 bool
shape = ["tokens", "hidden"]
strides = ["input_stride", 1]           # elements; default contiguous
role = "in"                             # in | out | inout | scratch (scratch: not compared)
dist = "normal"                         # see porter/verify/inputs.py; default by dtype ("normal" for floats)
low = 0; high = "num_experts"           # for dist = "uniform"/"randint"
init = 0                                # value an out/scratch buffer must be filled with before the launch (else: poisoned)
optional = false                        # true: verified with a null pointer too
compare = "close"                       # exact | close | set-per-segment | none; default: close for floats, exact for ints/codes
compare_reason = ""                     # required when compare is none or set-per-segment
segments = "offsets_buffer"             # for set-per-segment

[scalars]                               # every other kernel parameter: number, bool, or expression over sizes/instance args
epsilon = 1e-6
hidden_size = "hidden"
input_stride = "hidden"                 # a list gives variants: input_stride = ["hidden", "hidden + 8"]

[launch]                                # expressions over sizes, scalars, template arguments
grid = ["tokens", 1, 1]
block = ["min(hidden // VEC, 1024)", 1, 1]
smem = 0                                # dynamic shared memory, bytes
cooperative = false
cluster = [1, 1, 1]

[reference]                             # optional float64 oracle
function = "rms_norm"                   # in porter/verify/references/, or "file.py:function" beside the case

[tolerance]                             # optional, per buffer; loosening needs a reason that the report shows
```

Expressions are Python syntax over names, numbers, + - * // % ** comparisons and/or/not, `a if c else b`, and the
functions min max abs ceil_div round_up next_pow2 sizeof(type) aligned(buffer, bytes) sm_count().
"""
