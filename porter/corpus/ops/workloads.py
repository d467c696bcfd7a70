"""Arguments of the sizes that engines use, for every op: what is tuned, timed and built ahead of time."""

from porter.corpus.ops.activation.workloads import ACTIVATIONS
from porter.corpus.ops.embedding.workloads import EMBEDDING
from porter.corpus.ops.moe.workloads import MOE
from porter.corpus.ops.norm.workloads import NORMS
from porter.corpus.ops.quant.block_workloads import BLOCKS
from porter.corpus.ops.quant.workloads import QUANT
from porter.corpus.ops.rotary.workloads import ROTARY
from porter.corpus.ops.softmax.workloads import SOFTMAX
from porter.corpus.ops.workload import Workload

WORKLOADS: dict[str, Workload] = {**NORMS, **ACTIVATIONS, **ROTARY, **SOFTMAX, **EMBEDDING, **QUANT, **BLOCKS, **MOE}
