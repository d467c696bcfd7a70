"""The vocabulary that ports and curated kernels share. Each function's docstring says which instruction it becomes."""

from porter.corpus.lib.activations import *  # noqa: F403
from porter.corpus.lib.blocks import *  # noqa: F403
from porter.corpus.lib.chunks import *  # noqa: F403
from porter.corpus.lib.cluster import *  # noqa: F403
from porter.corpus.lib.cluster_reductions import *  # noqa: F403
from porter.corpus.lib.exp_sums import *  # noqa: F403
from porter.corpus.lib.floats import *  # noqa: F403
from porter.corpus.lib.half_math import *  # noqa: F403
from porter.corpus.lib.inline import *  # noqa: F403
from porter.corpus.lib.integers import *  # noqa: F403
from porter.corpus.lib.libdevice import *  # noqa: F403
from porter.corpus.lib.memory import *  # noqa: F403
from porter.corpus.lib.ordered import *  # noqa: F403
from porter.corpus.lib.packed import *  # noqa: F403
from porter.corpus.lib.pointers import *  # noqa: F403
from porter.corpus.lib.quantisation.fp8_scales import *  # noqa: F403
from porter.corpus.lib.quantisation.group_scales import *  # noqa: F403
from porter.corpus.lib.quantisation.int8_scales import *  # noqa: F403
from porter.corpus.lib.quantisation.narrow_floats import *  # noqa: F403
from porter.corpus.lib.sync import *  # noqa: F403
from porter.corpus.lib.tensors import *  # noqa: F403
from porter.corpus.lib.warp import *  # noqa: F403
