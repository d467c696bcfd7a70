// The runtime of compiled code, one translation unit: `python -m tools.emulator_runtime` makes runtime.ll of it.
#include "layout.h"

#include "memory.c"
#include "races.c"
#include "lanes.c"
#include "blocks.c"
