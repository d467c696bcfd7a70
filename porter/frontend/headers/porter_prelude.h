// Everything that a .cu file may use without porter having the real toolkit; force-included before the source.
#pragma once
#include "porter_attributes.h"
#include "porter_std.h"
#include "porter_std20.h"
#include "porter_vector.h"
#include "porter_math.h"
#include "porter_simd.h"
#include "porter_half.h"
#include "porter_half_functions.h"
#include "porter_fp8.h"
#include "porter_device.h"
#include "porter_runtime.h"
#include "porter_libs.h"
