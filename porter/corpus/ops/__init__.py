"""The torch-facing functions of the corpus: arguments checked, a specialisation chosen, the kernel launched.

Importing this registers all of them as `torch.ops.porter.NAME`. Needs torch; CuTeDSL only when one is launched.
"""

from porter.corpus.ops.norm import rms_norm

__all__ = ["rms_norm"]
