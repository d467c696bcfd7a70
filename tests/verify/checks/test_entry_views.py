"""Views of stand-ins have the shapes, strides and offsets that torch gives views of tensors."""

from __future__ import annotations

import random

import pytest

from porter.verify.checks.entry import views
from porter.verify.checks.entry.views import Copies, View

torch = pytest.importorskip("torch")

EVERY_OTHER = slice(None, None, 2)
OPERATIONS = {
    "view": (lambda t, r: t.view(r), lambda v, r: views.viewed(v, r)),
    "flatten": (lambda t, r: t.view_as(t).flatten(0, 1), lambda v, r: views.flatten(v, 0, 1)),
    "unsqueeze": (lambda t, r: t.unsqueeze(1), lambda v, r: views.unsqueeze(v, 1)),
    "last": (lambda t, r: t.unsqueeze(-1), lambda v, r: views.unsqueeze(v, -1)),
    "squeeze": (lambda t, r: t.squeeze(), lambda v, r: views.squeeze(v)),
    "transpose": (lambda t, r: t.transpose(0, -1), lambda v, r: views.transposed(v, 0, -1)),
    "movedim": (lambda t, r: t.movedim(0, 1), lambda v, r: views.moved(v, 0, 1)),
    "select": (lambda t, r: t[0], lambda v, r: views.indexed(v, 0)),
    "negative": (lambda t, r: t[..., -1], lambda v, r: views.indexed(v, (..., -1))),
    "slices": (lambda t, r: t[1:, None, ::2], lambda v, r: views.indexed(v, (slice(1, None), None, EVERY_OTHER))),
    "narrow": (lambda t, r: t.narrow(1, 0, 1), lambda v, r: views.narrow(v, 1, 0, 1)),
    "expand": (lambda t, r: t.expand(3, -1, -1, -1), lambda v, r: views.expand(v, (3, -1, -1, -1))),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_as_torch_has_them(name):
    real, ours = OPERATIONS[name]
    rng = random.Random(name)
    compared = 0
    for _ in range(120):
        shape = [rng.choice((1, 2, 3, 4, 6)) for _ in range(3)]
        dense = views.contiguous_strides(shape)
        strides = tuple(s * rng.choice((1, 1, 2)) + rng.choice((0, 0, 5)) for s in dense)
        wanted = rng.choice(
            ([-1], [shape[0], -1], [-1, shape[2]], [shape[0] * shape[1], shape[2]], [1, -1, 1], [2, -1])
        )
        tensor = torch.empty(2000).as_strided(shape, strides)
        view = View(tuple(shape), strides)
        assert views.is_contiguous(view) == tensor.is_contiguous()
        try:
            made = real(tensor, wanted)
        except (RuntimeError, IndexError):
            with pytest.raises((Copies, RuntimeError, IndexError)):
                ours(view, wanted)
            continue
        if made.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr():
            with pytest.raises(Copies):
                ours(view, wanted)
            continue
        found = ours(view, wanted)
        assert (found.shape, found.offset) == (tuple(made.shape), made.storage_offset()), (shape, strides, wanted)
        long = [n for n, length in enumerate(made.shape) if length > 1]
        assert [found.strides[n] for n in long] == [made.stride(n) for n in long], (shape, strides, wanted)
        compared += 1
    assert compared > 20
