// Tensors, streams, guards and checks of PyTorch (ATen and the stable ABI) and of tvm-ffi, for host launch code.
#pragma once
#include "porter_host.h"
#include "porter_torch_types.h"
#include "porter_random.h"
#pragma clang force_cuda_host_device begin
namespace c10 {
constexpr ScalarType as_scalar_type(ScalarType t) { return t; }
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 }; constexpr DeviceType kCUDA = DeviceType::CUDA, kCPU = DeviceType::CPU, kMeta = DeviceType::Meta; using DeviceIndex = int8_t;
struct Device { Device(DeviceType, int = -1); Device(const std::string&); DeviceType type() const; int8_t index() const; bool is_cuda() const; bool is_cpu() const; bool operator==(const Device&) const; bool operator!=(const Device&) const; std::string str() const; };
enum class MemoryFormat { Contiguous, Preserve, ChannelsLast, ChannelsLast3d }; enum class Layout { Strided, Sparse }; constexpr Layout kStrided = Layout::Strided;
template <class T> struct ArrayRef { ArrayRef(); ArrayRef(const T*, size_t); ArrayRef(std::initializer_list<T>); ArrayRef(const std::vector<T>&); ArrayRef(const T&); template <size_t N> ArrayRef(const T (&)[N]); const T* data() const; size_t size() const; bool empty() const; const T& operator[](size_t) const; const T* begin() const; const T* end() const; const T& back() const; const T& front() const; std::vector<T> vec() const; ArrayRef slice(size_t, size_t) const; bool equals(ArrayRef) const; bool operator==(ArrayRef) const; bool operator!=(ArrayRef) const; };
using IntArrayRef = ArrayRef<int64_t>; using IntHeaderOnlyArrayRef = ArrayRef<int64_t>;
struct Scalar { Scalar(); Scalar(double); Scalar(float); Scalar(int); Scalar(int64_t); Scalar(bool); template <class T> T to() const; double toDouble() const; float toFloat() const; int64_t toLong() const; };
struct Half_; struct caffe2_type { template <class T> bool operator==(T) const; };
struct TensorOptions { TensorOptions(); TensorOptions(ScalarType); TensorOptions(Device); TensorOptions(DeviceType); TensorOptions(Layout); TensorOptions dtype(ScalarType) const; ScalarType dtype() const; TensorOptions device(Device) const; TensorOptions device(DeviceType, int = -1) const; Device device() const; TensorOptions layout(Layout) const; TensorOptions requires_grad(bool) const; TensorOptions memory_format(MemoryFormat) const; };
struct Error : std::exception { Error(const std::string&); };
struct SymInt { SymInt(int64_t); operator int64_t() const; };
struct intrusive_ptr_target {}; struct StorageImpl; struct Storage { void* data() const; size_t nbytes() const; };
namespace cuda { struct CUDAStream { cudaStream_t stream() const; operator cudaStream_t() const; int device_index() const; void synchronize() const; }; CUDAStream getCurrentCUDAStream(int = -1); CUDAStream getDefaultCUDAStream(int = -1); CUDAStream getStreamFromPool(bool = false, int = -1); struct CUDAGuard { CUDAGuard(Device); CUDAGuard(int); void set_index(int); }; struct OptionalCUDAGuard { OptionalCUDAGuard(); OptionalCUDAGuard(Device); template <class T> OptionalCUDAGuard(T); }; struct CUDAStreamGuard { CUDAStreamGuard(CUDAStream); }; int current_device(); int device_count(); int warp_size(); void set_device(int); }
struct DeviceGuard { DeviceGuard(Device); }; struct OptionalDeviceGuard { template <class T> OptionalDeviceGuard(T); };
template <class... A> std::string str(const A&...);
}  // namespace c10
namespace at {
struct Tensor;
template <class T, size_t N> struct TensorAccessor { T* data() const; int64_t size(int) const; int64_t stride(int) const; TensorAccessor<T, N - 1> operator[](int64_t) const; }; template <class T> struct TensorAccessor<T, 1> { T* data() const; int64_t size(int) const; int64_t stride(int) const; T& operator[](int64_t) const; };
template <class T> struct RestrictPtrTraits { typedef T* __restrict__ PtrType; }; template <class T> struct DefaultPtrTraits { typedef T* PtrType; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t> struct GenericPackedTensorAccessor { typename P<T>::PtrType data_; I sizes_[N]; I strides_[N]; typename P<T>::PtrType data() const; I size(int) const; I stride(int) const; GenericPackedTensorAccessor<T, N - 1, P, I> operator[](I) const; };
template <class T, template <class> class P, class I> struct GenericPackedTensorAccessor<T, 1, P, I> { typename P<T>::PtrType data_; I sizes_[1]; I strides_[1]; typename P<T>::PtrType data() const; I size(int) const; I stride(int) const; T& operator[](I) const; };
template <class T, size_t N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int>; template <class T, size_t N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>; template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t> using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
struct DeprecatedTypeProperties { ScalarType scalarType() const; operator ScalarType() const; bool is_cuda() const; TensorOptions options() const; };
struct dtype_t { operator ScalarType() const; size_t itemsize() const; std::string name() const; bool operator==(ScalarType) const; bool operator!=(ScalarType) const; };
struct Tensor {
  Tensor(); void* data_ptr() const; template <class T> T* data_ptr() const; void* mutable_data_ptr() const; template <class T> T* mutable_data_ptr() const; const void* const_data_ptr() const; template <class T> const T* const_data_ptr() const; template <class T> T* data() const;
  int64_t size(int64_t) const; int64_t stride(int64_t) const; IntArrayRef sizes() const; IntArrayRef strides() const; int64_t numel() const; int64_t dim() const; int64_t ndimension() const; int64_t element_size() const; size_t itemsize() const; size_t nbytes() const; int64_t storage_offset() const; Storage storage() const;
  ScalarType scalar_type() const; ScalarType dtype() const; DeprecatedTypeProperties type() const; TensorOptions options() const; Device device() const; int get_device() const; int get_device_index() const; Layout layout() const; bool is_cuda() const; bool is_cpu() const; bool defined() const; bool is_contiguous(MemoryFormat = MemoryFormat::Contiguous) const; bool is_non_overlapping_and_dense() const; bool is_floating_point() const; bool has_storage() const; bool is_meta() const; bool is_same(const Tensor&) const;
  Tensor contiguous(MemoryFormat = MemoryFormat::Contiguous) const; template <class... A> Tensor view(A&&...) const; Tensor view(IntArrayRef) const; Tensor reshape(IntArrayRef) const; template <class... A> Tensor to(A&&...) const; Tensor clone() const; Tensor detach() const; Tensor cpu() const; Tensor cuda() const; Tensor flatten(int64_t = 0, int64_t = -1) const; Tensor squeeze() const; Tensor squeeze(int64_t) const; Tensor unsqueeze(int64_t) const; Tensor transpose(int64_t, int64_t) const; Tensor t() const; Tensor permute(IntArrayRef) const; Tensor narrow(int64_t, int64_t, int64_t) const; Tensor slice(int64_t, int64_t = 0, int64_t = 0, int64_t = 1) const; Tensor select(int64_t, int64_t) const; Tensor expand(IntArrayRef) const; Tensor index(std::initializer_list<int64_t>) const; Tensor operator[](int64_t) const; Tensor new_empty(IntArrayRef, TensorOptions = TensorOptions()) const; Tensor new_zeros(IntArrayRef, TensorOptions = TensorOptions()) const;
  Tensor& copy_(const Tensor&, bool = false); Tensor& zero_() const; Tensor& fill_(Scalar) const; Tensor sum() const; Tensor sum(int64_t) const; Tensor max() const; template <class T> T item() const; Scalar item() const; Tensor abs() const; Tensor sqrt() const; Tensor pow(Scalar) const; Tensor resize_(IntArrayRef) const; Tensor set_requires_grad(bool) const;
  template <class T, size_t N> TensorAccessor<T, N> accessor() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits> PackedTensorAccessor32<T, N, P> packed_accessor32() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits> PackedTensorAccessor64<T, N, P> packed_accessor64() const; template <class T, size_t N, template <class> class P = DefaultPtrTraits, class I = int64_t> GenericPackedTensorAccessor<T, N, P, I> packed_accessor() const;
};
using TensorList = ArrayRef<Tensor>;
#define PORTER_FACTORY(f) template <class... A> Tensor f(IntArrayRef, A&&...); Tensor f(IntArrayRef, TensorOptions = TensorOptions()); template <class... A> Tensor f##_like(const Tensor&, A&&...);
PORTER_FACTORY(empty) PORTER_FACTORY(zeros) PORTER_FACTORY(ones) PORTER_FACTORY(rand) PORTER_FACTORY(randn) PORTER_FACTORY(full)
#undef PORTER_FACTORY
template <class... A> Tensor from_blob(A&&...); template <class... A> Tensor empty_strided(A&&...); template <class... A> Tensor arange(A&&...); template <class... A> Tensor sum(A&&...); template <class... A> Tensor cat(A&&...); template <class... A> Tensor tensor(A&&...); template <class... A> Tensor matmul(A&&...); template <class... A> Tensor max(const Tensor&, A&&...);
struct Context; Context& globalContext(); struct PhiloxCudaState { union { uint64_t val; int64_t* ptr; } seed_, offset_; uint32_t offset_intragraph_ = 0; bool captured_ = false; };
struct Generator {}; struct CUDAGeneratorImpl { PhiloxCudaState philox_cuda_state(uint64_t); std::mutex mutex_; }; template <class T> T* get_generator_or_default(const std::optional<Generator>&, const Generator&);
template <class T> T* check_generator(const std::optional<Generator>&); struct OptionalDeviceGuard { template <class T> OptionalDeviceGuard(T); }; struct DeviceGuard { DeviceGuard(Device); }; std::optional<Device> device_of(const Tensor&);
template <class T, class U> constexpr T ceil_div(T a, U b) { return (a + b - 1) / b; }
namespace cuda { using namespace c10::cuda; using c10::cuda::getCurrentCUDAStream; cudaDeviceProp* getCurrentDeviceProperties(); cudaDeviceProp* getDeviceProperties(int); int warp_size(); struct blas_handle; struct cublasContext* getCurrentCUDABlasHandle(); template <class T, class U> constexpr T ATenCeilDiv(T a, U b) { return (a + b - 1) / b; } namespace philox { std::tuple<uint64_t, uint64_t> unpack(PhiloxCudaState); } namespace detail { const Generator& getDefaultCUDAGenerator(int = -1); } }
inline namespace native {}
}  // namespace at
namespace c10 { using at::Tensor; using at::device_of; }
namespace torch {
using at::Tensor; using c10::Device; using c10::TensorOptions; constexpr c10::DeviceType kCUDA = c10::kCUDA; TensorOptions dtype(c10::ScalarType); TensorOptions device(c10::Device); namespace cuda { using namespace c10::cuda; bool is_available(); }
struct Library { template <class... A> Library& def(A&&...); template <class... A> Library& impl(A&&...); }; struct CppFunction { template <class... A> static CppFunction makeFromBoxedFunction(A&&...); };
namespace headeronly { using c10::DeviceType; using c10::IntHeaderOnlyArrayRef; using c10::kCUDA; }
namespace stable {
using Tensor = at::Tensor; using Device = c10::Device; using c10::DeviceType; using namespace at;
#define PORTER_STABLE(f) template <class... A> Tensor f(const Tensor&, A&&...); template <class... A> Tensor f(const Tensor&, c10::IntArrayRef, A&&...);
PORTER_STABLE(new_empty) PORTER_STABLE(new_zeros) PORTER_STABLE(view) PORTER_STABLE(reshape) PORTER_STABLE(contiguous) PORTER_STABLE(narrow) PORTER_STABLE(flatten) PORTER_STABLE(transpose) PORTER_STABLE(clone) PORTER_STABLE(zero_) PORTER_STABLE(fill_) PORTER_STABLE(copy_) PORTER_STABLE(to) PORTER_STABLE(select) PORTER_STABLE(squeeze) PORTER_STABLE(unsqueeze) PORTER_STABLE(subtract) PORTER_STABLE(amax)
#undef PORTER_STABLE
Tensor empty(c10::IntArrayRef, std::optional<c10::ScalarType> = std::nullopt, std::optional<c10::Layout> = std::nullopt, std::optional<c10::Device> = std::nullopt, std::optional<bool> = std::nullopt); template <class... A> Tensor empty_like(const Tensor&, A&&...); template <class... A> Tensor from_blob(A&&...);
namespace accelerator { using DeviceIndex = int32_t; struct DeviceGuard { explicit DeviceGuard(int); explicit DeviceGuard(c10::Device); }; struct Stream { int64_t id() const; template <class T> operator T() const; }; Stream getCurrentStream(int); int getCurrentDeviceIndex(); }
namespace detail { template <class T> uint64_t from(T); template <class T> T to(uint64_t); }
}  // namespace stable
}  // namespace torch
typedef int32_t AOTITorchError; typedef void* AtenTensorHandle; AOTITorchError aoti_torch_get_current_cuda_stream(int32_t, void**);
struct DLDataType { uint8_t code, bits; uint16_t lanes; }; struct DLDevice { int device_type; int device_id; };
enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6, kDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12 }; enum { kDLCPU = 1, kDLCUDA = 2 };
constexpr bool operator==(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; } constexpr bool operator!=(DLDataType a, DLDataType b) { return !(a == b); }
namespace tvm { namespace ffi {
struct ShapeView { int64_t operator[](size_t) const; size_t size() const; const int64_t* begin() const; const int64_t* end() const; const int64_t* data() const; };
struct TensorView { TensorView(); void* data_ptr() const; int64_t size(int64_t) const; int64_t stride(int64_t) const; ShapeView sizes() const; ShapeView strides() const; ShapeView shape() const; int64_t numel() const; int32_t ndim() const; int32_t dim() const; DLDataType dtype() const; DLDevice device() const; bool IsContiguous() const; int64_t byte_offset() const; bool defined() const; };
struct Tensor : TensorView {}; struct CUDADeviceGuard { explicit CUDADeviceGuard(int); }; template <class T> struct Optional : std::optional<T> { using std::optional<T>::optional; }; struct AnyView {}; struct Any {}; struct String : std::string { using std::string::string; }; struct Function {}; template <class T> struct Array : std::vector<T> {}; template <class K, class V> struct Map : std::map<K, V> {}; template <class... T> struct Tuple : std::tuple<T...> {}; struct Shape : ShapeView {};
} }  // namespace tvm::ffi
int TVMFFIEnvGetStream_(int, int); cudaStream_t TVMFFIEnvGetStream(int, int);
// warp functions of ATen/cuda/DeviceUtils.cuh
template <class T> T WARP_SHFL(T, int, int = 32, unsigned = 0xffffffffu); template <class T> T WARP_SHFL_XOR(T, int, int = 32, unsigned = 0xffffffffu); template <class T> T WARP_SHFL_UP(T, unsigned, int = 32, unsigned = 0xffffffffu); template <class T> T WARP_SHFL_DOWN(T, unsigned, int = 32, unsigned = 0xffffffffu); unsigned WARP_BALLOT(int, unsigned = 0xffffffffu);
AOTITorchError torch_get_current_cuda_blas_handle(void**);
template <class... A> void __porter_check(bool, A&&...); template <class... A> [[noreturn]] void __porter_fail(A&&...);
#pragma clang force_cuda_host_device end
#define TVM_FFI_DLL_EXPORT_TYPED_FUNC(...)
#define TVM_FFI_ICHECK(c) if (!(c)) std::cerr
#define TVM_FFI_ICHECK_EQ(a, b) if (!((a) == (b))) std::cerr
#define TVM_FFI_ICHECK_NE(a, b) if (!((a) != (b))) std::cerr
#define TVM_FFI_ICHECK_GT(a, b) if (!((a) > (b))) std::cerr
#define TVM_FFI_ICHECK_GE(a, b) if (!((a) >= (b))) std::cerr
#define TVM_FFI_ICHECK_LE(a, b) if (!((a) <= (b))) std::cerr
#define TVM_FFI_ICHECK_LT(a, b) if (!((a) < (b))) std::cerr
#define TVM_FFI_THROW(...) std::cerr
#define TVM_FFI_LOG_AND_THROW(...) std::cerr
#define TVM_FFI_INLINE inline
// An if statement, as in PyTorch: code that forgets the semicolon compiles there too.
#define TORCH_CHECK(c, ...) if (!(c)) { __porter_fail(__VA_ARGS__); }
#define TORCH_CHECK_EQ(a, b) __porter_check((a) == (b))
#define TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_CHECK_VALUE TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_WARN(...)
#define TORCH_WARN_ONCE(...)
#define STD_TORCH_CHECK TORCH_CHECK
#define STD_TORCH_CHECK_NOT_IMPLEMENTED TORCH_CHECK
#define TORCH_ERROR_CODE_CHECK(c) __porter_check((c) == 0)
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define AT_ERROR(...) __porter_fail(__VA_ARGS__)
#define C10_THROW_ERROR(t, m) __porter_fail(m)
#define AT_CUDA_CHECK(e) (void)(e)
#define C10_CUDA_CHECK(e) (void)(e)
#define STD_CUDA_CHECK(e) (void)(e)
#define STD_CUDA_KERNEL_LAUNCH_CHECK() (void)cudaGetLastError()
#define C10_CUDA_KERNEL_LAUNCH_CHECK() (void)cudaGetLastError()
#define TORCH_CUDABLAS_CHECK(e) (void)(e)
#define CUDA_KERNEL_ASSERT(c) assert(c)
#define TORCH_EXTENSION_NAME porter_extension
#define PYBIND11_MODULE(name, m) template <class PorterModule> void __porter_pybind_##name(PorterModule& m)
#define PORTER_JOIN_(a, b) a##b
#define PORTER_JOIN(a, b) PORTER_JOIN_(a, b)
#define TORCH_LIBRARY(ns, m) static void PORTER_JOIN(__porter_library_, __COUNTER__)(torch::Library & m)
#define TORCH_LIBRARY_FRAGMENT(ns, m) TORCH_LIBRARY(ns, m)
#define TORCH_LIBRARY_IMPL(ns, k, m) TORCH_LIBRARY(ns, m)
#define STABLE_TORCH_LIBRARY(ns, m) TORCH_LIBRARY(ns, m)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m) TORCH_LIBRARY(ns, m)
#define STABLE_TORCH_LIBRARY_IMPL(ns, k, m) TORCH_LIBRARY(ns, m)
#define TORCH_BOX(f) (f)
#define TORCH_SELECTIVE_NAME(n) n
namespace pybind11 { struct object {}; struct bytes {}; struct arg { arg(const char*); template <class T> arg operator=(T) const; }; } namespace py = pybind11;
