"""The original kernel as PTX and cubin, by NVRTC."""
