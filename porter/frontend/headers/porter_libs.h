// The libraries that public CUDA code builds on, declared by porter.
#pragma once
#include "porter_groups.h"
#include "porter_cub.h"
#include "porter_random.h"
#include "porter_blas.h"
#include "porter_torch.h"
