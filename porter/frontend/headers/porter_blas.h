// cuBLAS names that host code of public files mentions; functions take anything.
#pragma once
#include "porter_runtime.h"
typedef struct cublasContext* cublasHandle_t;
typedef struct cublasLtContext* cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque* cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque* cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque* cublasLtMatmulPreference_t;
struct cublasLtMatmulAlgo_t { unsigned long long data[8]; };
struct cublasLtMatmulHeuristicResult_t { cublasLtMatmulAlgo_t algo; size_t workspaceSize; int state; float wavesCount; };
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_INTERNAL_ERROR = 14, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_64F = 70 };
enum cublasMath_t { CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_TF32_TENSOR_OP_MATH = 3 };
enum cublasGemmAlgo_t { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_8I = 3, CUDA_R_32I = 10, CUDA_R_16BF = 14, CUDA_R_8F_E4M3 = 28, CUDA_R_8F_E5M2 = 29 };
typedef cudaDataType cudaDataType_t;
enum { CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 10, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 11, CUBLASLT_MATMUL_DESC_SCALE_TYPE = 1,
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26, CUBLASLT_MATRIX_LAYOUT_ORDER = 1, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_GELU = 32, CUBLASLT_EPILOGUE_GELU_AUX = 160, CUBLASLT_EPILOGUE_GELU_BIAS = 36, CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU = 192, CUBLASLT_EPILOGUE_BGRADB = 512, CUBLASLT_ORDER_COL32 = 2, CUBLASLT_ORDER_ROW = 1, CUBLASLT_ORDER_COL = 0 };
typedef int cublasLtEpilogue_t;
typedef int cublasLtOrder_t;
#define PORTER_BLAS(f) template <class... A> cublasStatus_t f(A&&...);
PORTER_BLAS(cublasCreate) PORTER_BLAS(cublasCreate_v2) PORTER_BLAS(cublasDestroy) PORTER_BLAS(cublasSetStream) PORTER_BLAS(cublasSetMathMode) PORTER_BLAS(cublasGetMathMode)
PORTER_BLAS(cublasSetWorkspace) PORTER_BLAS(cublasSgemm) PORTER_BLAS(cublasHgemm) PORTER_BLAS(cublasDgemm) PORTER_BLAS(cublasGemmEx) PORTER_BLAS(cublasSgemv)
PORTER_BLAS(cublasGemmStridedBatchedEx) PORTER_BLAS(cublasSgemmStridedBatched) PORTER_BLAS(cublasGemmBatchedEx) PORTER_BLAS(cublasGetVersion)
PORTER_BLAS(cublasLtCreate) PORTER_BLAS(cublasLtDestroy) PORTER_BLAS(cublasLtMatmul) PORTER_BLAS(cublasLtMatmulDescCreate) PORTER_BLAS(cublasLtMatmulDescDestroy)
PORTER_BLAS(cublasLtMatmulDescSetAttribute) PORTER_BLAS(cublasLtMatrixLayoutCreate) PORTER_BLAS(cublasLtMatrixLayoutDestroy)
PORTER_BLAS(cublasLtMatrixLayoutSetAttribute) PORTER_BLAS(cublasLtMatmulPreferenceCreate) PORTER_BLAS(cublasLtMatmulPreferenceDestroy)
PORTER_BLAS(cublasLtMatmulPreferenceSetAttribute) PORTER_BLAS(cublasLtMatmulAlgoGetHeuristic) PORTER_BLAS(cublasLtMatrixTransform)
PORTER_BLAS(cublasLtMatrixTransformDescCreate) PORTER_BLAS(cublasLtMatrixTransformDescDestroy) PORTER_BLAS(cublasLtMatrixTransformDescSetAttribute)
#undef PORTER_BLAS
