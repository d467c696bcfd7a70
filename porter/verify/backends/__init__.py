"""Where compiled kernels run and are timed: the emulator and GPUs."""
