"""A model's sizes, read from its config.json (as transformers writes them)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from porter.corpus.models.quantised_inputs import Schemes, UnknownScheme, read_schemes


class ModelError(ValueError):
    """A config.json that no calls can be told from: `code` (PRTnnn), a message, and what to do next."""

    def __init__(self, code: str, message: str, path: Path, help_: str):
        super().__init__(f"error[{code}]: {message}\n  --> {path}\n  = help: {help_}")
        self.code = code


@dataclass(frozen=True)
class Latent:
    """Sizes of multi-head latent attention: ranks that queries (0: not compressed) and keys and values are compressed
    to, and elements of a head that turn, that do not, and of a value."""

    q_rank: int
    kv_rank: int
    rope: int
    nope: int
    value: int


@dataclass(frozen=True)
class Experts:
    """Sizes of a mixture of experts: how many, how many a token, the width of one and of what all tokens share (0:
    nothing), and how experts are chosen. `groups` 0: all experts are one group."""

    count: int
    chosen: int
    width: int
    shared_width: int = 0
    scores: str = "softmax"
    renormalize: bool = True
    groups: int = 0
    chosen_groups: int = 0
    scale: float = 1.0


@dataclass(frozen=True)
class Model:
    """What decides the calls. Sizes in elements, of the whole model; `dtype` a scalar name of porter ("bf16").

    `kind`: model_type. `experts_of`: for each layer whether it has experts. `rotary`: elements of a head that turn,
    pairs (i, i + rotary / 2) if `neox`. `activation`: the op that works on the gate and up halves.
    """

    kind: str
    dtype: str
    hidden: int
    vocab: int
    positions: int
    eps: float
    q_heads: int
    k_heads: int
    head: int
    rotary: int
    neox: bool
    qk_norm: bool
    width: int
    activation: str
    experts_of: tuple[bool, ...]
    experts: Experts | None = None
    latent: Latent | None = None
    schemes: Schemes = field(default_factory=Schemes)

    @property
    def layers(self) -> int:
        return len(self.experts_of)


UNREADABLE = "PRT971"
_DENSE = ("llama", "mistral", "qwen2", "qwen3")
_EXPERTS = ("qwen3_moe", "mixtral", "deepseek_v3", "gpt_oss")
KINDS = (*_DENSE, *_EXPERTS)
_DTYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}
_ACTIVATIONS = {
    "silu": "silu_and_mul", "swish": "silu_and_mul", "gelu": "gelu_and_mul", "gelu_pytorch_tanh": "gelu_tanh_and_mul",
}  # fmt: skip


def read_model(path: Path | str) -> Model:
    """The model of a config.json, or of the folder that holds one; of a model of several parts, its text part.

    Raises ModelError: PRT970 for a `model_type` that is not known, PRT971 for a file that cannot be read, a size that
    is missing or makes no sense, PRT972 for a quantisation that is not known.
    """
    path = Path(path)
    path = path / "config.json" if path.is_dir() else path
    try:
        given = json.loads(path.read_text())
    except OSError as error:
        raise ModelError(UNREADABLE, f"cannot be read: {error.strerror or error}", path, "give a model's config.json, "
                         "or the folder with it") from None  # fmt: skip
    except ValueError as error:
        raise ModelError(UNREADABLE, f"this is not JSON: {error}", path, "give a model's config.json") from None
    if not isinstance(given, dict):
        raise ModelError(UNREADABLE, "this is JSON, but not an object", path, "give a model's config.json")
    text = given.get("text_config")
    if isinstance(text, dict) and given.get("model_type") not in KINDS:
        outside = {k: given[k] for k in ("quantization_config", "torch_dtype", "dtype") if k in given}
        given = {**outside, **text}
    keys = _Keys(given, path)
    kind = given.get("model_type")
    if kind not in KINDS:
        raise ModelError(
            "PRT970", f"model_type {kind!r} is not known", path,
            f"known: {', '.join(KINDS)}. For others, write what the engine calls as a list for `porter build LIST`; "
            "`porter build --model CONFIG --dry-run --json` of a similar model prints one to start from",
        )  # fmt: skip
    try:
        return _model(str(kind), keys)
    except UnknownScheme as error:
        raise ModelError(
            "PRT972", str(error), path,
            'without "quantization_config" the file stands for the model that is not quantised; add the ops that '
            "quantise to a list for `porter build LIST`",
        ) from None  # fmt: skip


class _Keys:
    """Values of a config.json by name, with complaints that name the key and the file."""

    def __init__(self, given: Mapping[str, Any], path: Path):
        self.given = given
        self.path = path

    def error(self, message: str) -> ModelError:
        return ModelError(UNREADABLE, message, self.path, "take the file from the model's repository unchanged")

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A whole number that is `least` at least; the first name that is there counts."""
        value = next((self.given[n] for n in names if self.given.get(n) is not None), default)
        if value is None:
            raise self.error(f"there is no {names[0]!r}")
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"{names[0]!r} is {value!r}, not a whole number from {least} on")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.given.get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.error(f"{name!r} is {value!r}, not a number")
        return float(value)

    def one_of(self, names: tuple[str, ...], known: Mapping[str, str], default: str) -> str:
        value = next((self.given[n] for n in names if self.given.get(n) is not None), default)
        if value not in known:
            raise self.error(f"{names[0]!r} is {value!r}; known: {', '.join(known)}")
        return known[value]


def _model(kind: str, keys: _Keys) -> Model:
    hidden, q_heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    layers = keys.count("num_hidden_layers")
    latent = _latent(keys) if kind == "deepseek_v3" else None
    head = latent.nope + latent.rope if latent else keys.count("head_dim", default=hidden // q_heads)
    k_heads = keys.count("num_key_value_heads", default=q_heads)
    if q_heads % k_heads:
        raise keys.error(f"{q_heads} heads of queries do not share {k_heads} heads of keys evenly")
    experts = _experts(kind, keys) if kind in _EXPERTS else None
    activation = keys.one_of(("hidden_act", "hidden_activation"), _ACTIVATIONS, "silu")
    rotary = latent.rope if latent else int(head * keys.number("partial_rotary_factor", 1.0))
    positions = keys.count("max_position_embeddings")
    try:
        schemes = read_schemes(keys.given.get("quantization_config"))
    except (TypeError, AttributeError) as error:
        raise keys.error(f"'quantization_config' is not as its quant_method has it: {error}") from None
    return Model(
        kind, keys.one_of(("torch_dtype", "dtype"), _DTYPES, "bfloat16"), hidden, keys.count("vocab_size"), positions,
        keys.number("rms_norm_eps", 1e-6), q_heads, k_heads, head, rotary, kind != "deepseek_v3",
        kind in ("qwen3", "qwen3_moe"), keys.count("intermediate_size", default=0 if experts else None, least=0),
        "swigluoai_and_mul" if kind == "gpt_oss" else activation, _experts_of(kind, keys, layers), experts, latent,
        schemes,
    )  # fmt: skip


def _latent(keys: _Keys) -> Latent:
    return Latent(
        keys.count("q_lora_rank", default=0, least=0), keys.count("kv_lora_rank"), keys.count("qk_rope_head_dim"),
        keys.count("qk_nope_head_dim"), keys.count("v_head_dim"),
    )  # fmt: skip


def _experts(kind: str, keys: _Keys) -> Experts:
    chosen = keys.count("num_experts_per_tok", "experts_per_token")
    if kind in ("mixtral", "gpt_oss"):
        return Experts(keys.count("num_local_experts"), chosen, keys.count("intermediate_size"))
    width = keys.count("moe_intermediate_size")
    renormalize = bool(keys.given.get("norm_topk_prob", kind == "deepseek_v3"))
    if kind == "qwen3_moe":
        return Experts(keys.count("num_experts"), chosen, width, renormalize=renormalize)
    scores = keys.one_of(("scoring_func",), {"sigmoid": "sigmoid", "softmax": "softmax"}, "sigmoid")
    return Experts(
        keys.count("n_routed_experts"), chosen, width, width * keys.count("n_shared_experts", default=0, least=0),
        scores, renormalize, keys.count("n_group", default=1), keys.count("topk_group", default=1),
        keys.number("routed_scaling_factor", 1.0),
    )  # fmt: skip


def _experts_of(kind: str, keys: _Keys, layers: int) -> tuple[bool, ...]:
    """For each layer whether it has experts."""
    if kind in _DENSE:
        return (False,) * layers
    if kind == "deepseek_v3":
        first, every = keys.count("first_k_dense_replace", default=0, least=0), keys.count("moe_layer_freq", default=1)
        return tuple(n >= first and n % every == 0 for n in range(layers))
    if kind == "qwen3_moe":
        step, dense = keys.count("decoder_sparse_step", default=1), keys.given.get("mlp_only_layers") or []
        return tuple(n not in dense and (n + 1) % step == 0 for n in range(layers))
    return (True,) * layers
