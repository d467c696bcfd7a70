"""What an engine would call of the corpus for a model: read from the model's config.json."""

from porter.corpus.models.calls import ModelCalls, model_calls
from porter.corpus.models.config import Model, ModelError, read_model

__all__ = ["Model", "ModelCalls", "ModelError", "model_calls", "read_model"]
