"""The torch-facing functions of the corpus: arguments checked, a specialisation chosen, the kernel launched.

Importing this registers all of them as `torch.ops.porter.NAME`. Needs torch; CuTeDSL only when one is launched.
"""

from porter.corpus.ops.norm import fused_add_rms_norm, qk_norm, rms_norm

__all__ = ["fused_add_rms_norm", "qk_norm", "rms_norm"]
