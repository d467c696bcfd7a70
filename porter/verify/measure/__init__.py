"""The original alone: what it touches of its buffers, and which sizes it takes."""
