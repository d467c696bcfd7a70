"""Arguments of the sizes that engines use, for every op: what is tuned, timed and built ahead of time."""

from porter.corpus.ops.element_workloads import ELEMENTS
from porter.corpus.ops.norm_workloads import NORMS
from porter.corpus.ops.quant.workloads import QUANT
from porter.corpus.ops.variant_workloads import VARIANTS
from porter.corpus.ops.workload import Workload

WORKLOADS: dict[str, Workload] = {**NORMS, **ELEMENTS, **VARIANTS, **QUANT}
