"""Which launches are verified, and the buffers they run on."""
