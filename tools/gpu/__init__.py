"""Running ports and originals on a GPU machine that has neither libclang nor NVRTC: a bundle made here, used there."""
