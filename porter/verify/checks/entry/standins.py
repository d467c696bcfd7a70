"""Stand-ins for tensors: they say shape, strides, dtype, device and address, and refuse every other use by name.

Nothing has memory. What a port does with one is asked through an allow-list; a view is another stand-in of the same
memory. Runs in the fenced child that imports the port, with the standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from porter.corpus.runtime.dtypes import DTYPES
from porter.verify.checks.entry import views
from porter.verify.checks.entry.views import Copies, View

if TYPE_CHECKING:
    from porter.verify.checks.entry.record import Record


@dataclass(frozen=True)
class StandInFacts:
    """What a stand-in is. `start`: the address of its memory. `fresh`: the number of an allocation of the port's own,
    -1 for what it was given."""

    name: str
    dtype: str
    view: View
    start: int
    device: str = "cuda:0"
    fresh: int = -1

    @property
    def itemsize(self) -> int:
        return DTYPES[self.dtype].bytes

    @property
    def address(self) -> int:
        return self.start + self.view.offset * self.itemsize if self.view.numel else 0

    def described(self) -> dict[str, Any]:
        """The facts as plain data."""
        return {
            "name": self.name, "dtype": self.dtype, "shape": self.view.shape, "strides": self.view.strides,
            "address": self.address, "device": self.device, "fresh": self.fresh,
            "fill": _table.fills.get(self.fresh, (0, None))[1],
        }  # fmt: skip


class Kind(Protocol):
    """How stand-ins, dtypes, devices and shapes are made: with or without torch."""

    def tensor(self, facts: StandInFacts) -> Any: ...

    def dtype(self, name: str) -> Any: ...

    def device(self, text: str) -> Any: ...

    def shape(self, lengths: Sequence[int]) -> Any: ...


@dataclass
class _Table:
    """The stand-ins of the call that is going on; they are kept, so that an id names one of them only."""

    record: Record | None = None
    kind: Kind | None = None
    known: dict[int, tuple[Any, StandInFacts]] = field(default_factory=dict)
    fills: dict[int, tuple[int, float | None]] = field(default_factory=dict)  # allocation -> elements, what fills it


_table = _Table()


def begin(record: Record, kind: Kind) -> None:
    """From now on stand-ins belong to this record."""
    _table.record, _table.kind, _table.known, _table.fills = record, kind, {}, {}


def make(facts: StandInFacts) -> Any:
    """A stand-in."""
    assert _table.kind is not None
    made = _table.kind.tensor(facts)
    _table.known[id(made)] = (made, facts)
    return made


def facts_of(value: Any) -> StandInFacts | None:
    """The facts of a stand-in, None for anything else."""
    found = _table.known.get(id(value))
    return found[1] if found else None


def allocate(shape: Sequence[Any], dtype: Any, device: Any, fill: float | None, strides: Sequence[int] = ()) -> Any:
    """Memory of the port's own, with nothing in it or full of one value."""
    number = len(_table.fills) + 1
    lengths = views.sizes_of([list(shape)])
    view = View(lengths, tuple(strides) or views.contiguous_strides(lengths))
    name = dtype if isinstance(dtype, str) and dtype in DTYPES else name_of(dtype)
    _table.fills[number] = (view.numel, fill)
    start = (0x7D << 40) + (number << 36)
    place = str(device)
    place = "cuda:0" if place == "cuda" else place
    return make(StandInFacts(f"allocation {number}", name, view, start, place, number))


def name_of(dtype: Any) -> str:
    """The scalar name of a dtype."""
    text = str(dtype).removeprefix("torch.")
    found = [d.name for d in DTYPES.values() if d.torch == text]
    if not found:
        raise TypeError(f"no scalar name for {dtype}")
    return found[0]


def refused(what: str, tensor: Any = None) -> Exception:
    """Note a use that is not allowed; the exception to raise."""
    assert _table.record is not None
    facts = facts_of(tensor)
    return _table.record.refuse(what, facts.name if facts else "")


# ---------------------------------------------------------------- what may be asked


def _strided(facts: StandInFacts, dim: int | None = None) -> Any:
    return facts.view.strides if dim is None else facts.view.strides[facts.view.axis(dim)]


def _size(facts: StandInFacts, dim: int | None = None) -> Any:
    return _kind().shape(facts.view.shape) if dim is None else facts.view.shape[facts.view.axis(dim)]


def _kind() -> Kind:
    assert _table.kind is not None
    return _table.kind


PROPERTIES: dict[str, Callable[[StandInFacts], Any]] = {
    "shape": lambda f: _kind().shape(f.view.shape),
    "dtype": lambda f: _kind().dtype(f.dtype),
    "device": lambda f: _kind().device(f.device),
    "ndim": lambda f: len(f.view.shape),
    "itemsize": lambda f: f.itemsize,
    "nbytes": lambda f: f.itemsize * f.view.numel,
    "is_cuda": lambda f: f.device.startswith("cuda"),
    "requires_grad": lambda f: False,
}
QUESTIONS: dict[str, Callable[..., Any]] = {
    "size": _size,
    "stride": _strided,
    "dim": lambda f: len(f.view.shape),
    "ndimension": lambda f: len(f.view.shape),
    "numel": lambda f: f.view.numel,
    "nelement": lambda f: f.view.numel,
    "element_size": lambda f: f.itemsize,
    "is_contiguous": lambda f: views.is_contiguous(f.view),
    "is_floating_point": lambda f: DTYPES[f.dtype].is_float,
    "data_ptr": lambda f: f.address,
    "get_device": lambda f: int(f.device.rpartition(":")[2]) if f.device.startswith("cuda") else -1,
    "storage_offset": lambda f: f.view.offset,
    "record_stream": lambda f, stream: None,
}


def _retyped(facts: StandInFacts, dtype: Any) -> StandInFacts:
    """`view(dtype)`: elements of another type, of the same size."""
    other = name_of(dtype)
    if DTYPES[other].bytes != facts.itemsize:
        raise Copies
    return replace(facts, dtype=other)


def _view(facts: StandInFacts, *sizes: Any) -> StandInFacts:
    if len(sizes) == 1 and not isinstance(sizes[0], int | list | tuple):
        return _retyped(facts, sizes[0])
    return replace(facts, view=views.viewed(facts.view, views.sizes_of(sizes)))


def _moved(change: Callable[..., View]) -> Callable[..., StandInFacts]:
    return lambda facts, *args, **kwargs: replace(facts, view=change(facts.view, *args, **kwargs))


VIEWS: dict[str, Callable[..., StandInFacts]] = {
    "view": _view,
    "reshape": _view,
    "flatten": _moved(lambda v, start_dim=0, end_dim=-1: views.flatten(v, start_dim, end_dim)),
    "unflatten": _moved(lambda v, dim, sizes: views.unflatten(v, dim, sizes)),
    "squeeze": _moved(lambda v, dim=None: views.squeeze(v, dim)),
    "unsqueeze": _moved(lambda v, dim: views.unsqueeze(v, dim)),
    "select": _moved(lambda v, dim, index: views.select(v, dim, index)),
    "narrow": _moved(lambda v, dim, start, length: views.narrow(v, dim, start, length)),
    "expand": _moved(lambda v, *sizes: views.expand(v, views.sizes_of(sizes))),
    "transpose": _moved(lambda v, dim0, dim1: views.transposed(v, dim0, dim1)),
    "permute": _moved(lambda v, *dims: views.permuted(v, views.sizes_of(dims))),
    "movedim": _moved(lambda v, source, destination: views.moved(v, source, destination)),
    "__getitem__": _moved(lambda v, index: views.indexed(v, index)),
}


def _new(facts: StandInFacts, fill: float | None, size: Sequence[Any], dtype: Any, device: Any) -> Any:
    return allocate(views.sizes_of(size), dtype or facts.dtype, device or facts.device, fill)


def allocated(tensor: Any, name: str, *args: Any, dtype: Any = None, device: Any = None) -> Any:
    """`new_empty`, `new_zeros` and `new_full` of a stand-in."""
    facts = facts_of(tensor)
    assert facts is not None
    if name == "new_full":
        size, fill = args
        return _new(facts, float(fill), [size], dtype, device)
    return _new(facts, 0.0 if name == "new_zeros" else None, args, dtype, device)


def filled(tensor: Any, value: float) -> Any:
    """`zero_` and `fill_`: noted, since the case decides whether they are allowed; of an own allocation: done."""
    facts = facts_of(tensor)
    assert facts is not None and _table.record is not None
    elements = _table.fills[facts.fresh][0] if facts.fresh > 0 else -1
    if elements == facts.view.numel and not _table.record.launches:
        _table.fills[facts.fresh] = (elements, float(value))
    else:
        whole = facts.view.offset == 0 and views.is_contiguous(facts.view)
        _table.record.use("fills", facts.name, fill=float(value), launched=len(_table.record.launches),
                          elements=facts.view.numel if whole else -1)  # fmt: skip
    return tensor


def asked(tensor: Any, name: str) -> Any:
    """An attribute of a stand-in. Raises, and notes, where it is not on the list."""
    facts = facts_of(tensor)
    assert facts is not None
    if name in PROPERTIES:
        return PROPERTIES[name](facts)
    if name in QUESTIONS:
        return partial(QUESTIONS[name], facts)
    if name in VIEWS:
        return partial(viewed, tensor, name)
    if name in ("new_empty", "new_zeros", "new_full"):
        return partial(allocated, tensor, name)
    if name == "zero_":
        return partial(filled, tensor, 0.0)
    if name == "fill_":
        return partial(filled, tensor)
    raise refused(f".{name}", tensor)


def viewed(tensor: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A view of a stand-in, by the name of the method that makes it."""
    facts = facts_of(tensor)
    assert facts is not None
    try:
        return make(VIEWS[name](facts, *args, **kwargs))
    except Copies:
        raise refused(f".{name}() that copies elements", tensor) from None


def length(tensor: Any) -> int:
    facts = facts_of(tensor)
    assert facts is not None
    if not facts.view.shape:
        raise TypeError("len() of a 0-d tensor")
    return facts.view.shape[0]


# What Python looks up in the class, past __getattribute__. Whatever is not here fails without a note, as an error.
_SPECIAL = (
    "add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv mod rmod imod pow"
    " rpow ipow matmul rmatmul imatmul and rand iand or ror ior xor rxor ixor lshift rlshift ilshift rshift rrshift"
    " irshift neg pos abs invert eq ne lt le gt ge bool int float complex index hash iter next reversed contains call"
    " setitem delitem repr str format bytes setattr delattr round trunc floor ceil enter exit dir sizeof divmod rdivmod"
)


def refusing(name: str) -> Callable[..., Any]:
    """A special method that refuses."""

    def special(self: Any, *_: Any, **__: Any) -> Any:
        raise refused(f"`{name}`", self)

    return special


def refuses_specials(members: dict[str, Any]) -> None:
    """Add special methods to the members of a class of stand-ins: all of them refuse."""
    for word in _SPECIAL.split():
        members[f"__{word}__"] = refusing(f"__{word}__")


# ---------------------------------------------------------------- without torch


def _members() -> dict[str, Any]:
    def getattribute(self: Any, name: str) -> Any:
        return type(self) if name == "__class__" else asked(self, name)

    members: dict[str, Any] = {"__slots__": (), "__module__": "torch", "__getattribute__": getattribute}
    refuses_specials(members)
    members |= {"__len__": length, "__getitem__": lambda self, index: viewed(self, "__getitem__", index)}
    return members


Tensor = type("Tensor", (), _members())


def _unknown(self: Any, name: str) -> Any:
    raise refused(f".{name} of a {type(self).__name__}")


class Size(tuple[int, ...]):
    """torch.Size."""

    __slots__ = ()
    __getattr__ = _unknown

    def numel(self) -> int:
        return View(tuple(self), ()).numel


class Dtype:
    """A torch.dtype."""

    __slots__ = ("is_floating_point", "itemsize", "name")
    __getattr__ = _unknown

    def __init__(self, name: str, itemsize: int, is_floating_point: bool):
        self.name, self.itemsize, self.is_floating_point = f"torch.{name}", itemsize, is_floating_point

    def __repr__(self) -> str:
        return self.name


class StandInDevice:
    """A torch.device."""

    __slots__ = ("index", "type")
    __getattr__ = _unknown

    def __init__(self, text: str):
        self.type, _, index = text.partition(":")
        self.index = int(index) if index else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StandInDevice) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Plain:
    """Stand-ins where torch is not loaded: nothing that the port can reach knows more than they do."""

    def __init__(self) -> None:
        self._dtypes = {d.name: Dtype(d.torch, d.bytes, d.is_float) for d in DTYPES.values() if d.torch}

    def tensor(self, facts: StandInFacts) -> Any:
        return Tensor()

    def dtype(self, name: str) -> Any:
        return self._dtypes[name]

    def device(self, text: str) -> Any:
        return StandInDevice(text)

    def shape(self, lengths: Sequence[int]) -> Any:
        return Size(lengths)
