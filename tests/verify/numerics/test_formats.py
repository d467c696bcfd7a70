"""The codecs of porter.verify.numerics.formats: exhaustively against torch's conversions and the definition of
rounding."""

import numpy as np
import pytest

from porter.verify.numerics import formats
from porter.verify.numerics.formats import (
    FORMATS,
    decode,
    encode,
    encode_e8m0,
    grid_of,
    pack_e2m1,
    round_to,
    unpack_e2m1,
)

SMALL = ["f16", "bf16", "e4m3", "e5m2", "e2m1"]
WITH_TORCH = {"f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def every_code(dtype: str) -> np.ndarray:
    fmt = FORMATS[dtype]
    return np.arange(1 << fmt.bits).astype(fmt.word)


def torch_decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    torch = pytest.importorskip("torch")
    signed = codes.view(np.int16 if codes.itemsize == 2 else np.uint8)
    return torch.from_numpy(signed.copy()).view(getattr(torch, WITH_TORCH[dtype])).to(torch.float64).numpy()


@pytest.mark.parametrize("dtype", WITH_TORCH)
def test_every_code_decodes_as_in_torch(dtype: str) -> None:
    codes = every_code(dtype)
    np.testing.assert_array_equal(decode(codes, dtype), torch_decode(codes, dtype))


def test_e2m1_values() -> None:
    positive = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    np.testing.assert_array_equal(decode(np.arange(16, dtype=np.uint8), "e2m1"), positive + [-v for v in positive])


@pytest.mark.parametrize("dtype", SMALL)
def test_every_finite_code_survives_the_round_trip(dtype: str) -> None:
    codes = every_code(dtype)
    finite = codes[np.isfinite(decode(codes, dtype))]
    np.testing.assert_array_equal(encode(decode(finite, dtype), dtype), finite)  # both zeros too


@pytest.mark.parametrize("dtype", SMALL)
def test_halfway_points_go_to_the_even_code_and_their_neighbours_to_the_nearer(dtype: str) -> None:
    grid = grid_of(dtype)
    lower, upper = grid[:-1], grid[1:]
    middle = (lower + upper) / 2
    even = np.where(encode(lower, dtype) % 2 == 0, lower, upper)
    np.testing.assert_array_equal(round_to(middle, dtype), even)
    np.testing.assert_array_equal(round_to(np.nextafter(middle, -np.inf), dtype), lower)
    np.testing.assert_array_equal(round_to(np.nextafter(middle, np.inf), dtype), upper)


@pytest.mark.parametrize("dtype", WITH_TORCH)
def test_float32_inputs_encode_as_in_torch(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 200_000, dtype=np.uint32)  # every magnitude, NaN and infinity among them
    x = np.concatenate([bits.view(np.float32), rng.standard_normal(100_000).astype(np.float32)])
    limit = FORMATS[dtype].largest
    if FORMATS[dtype].saturates:  # torch overflows where the conversion instructions saturate
        x = np.where(np.isnan(x), x, np.clip(x, -limit, limit)).astype(np.float32)
    with np.errstate(all="ignore"):
        theirs = torch.from_numpy(x).to(getattr(torch, WITH_TORCH[dtype])).to(torch.float64).numpy()
    np.testing.assert_array_equal(round_to(x, dtype), theirs)


def test_float32_rounds_as_numpy_does() -> None:
    rng = np.random.default_rng(2)
    x = np.ldexp(rng.standard_normal(100_000), rng.integers(-160, 140, 100_000).astype(np.int32))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(encode(x, "f32"), x.astype(np.float32).view(np.uint32))


@pytest.mark.parametrize(
    ("dtype", "largest", "smallest"),
    [("e4m3", 448.0, 2.0**-9), ("e5m2", 57344.0, 2.0**-16), ("e2m1", 6.0, 0.5)],
)
def test_small_formats_saturate_and_have_their_known_ends(dtype: str, largest: float, smallest: float) -> None:
    beyond = np.array([1e30, -1e30, np.inf, -np.inf])
    np.testing.assert_array_equal(round_to(beyond, dtype), np.sign(beyond) * largest)
    assert grid_of(dtype)[-1] == largest
    assert grid_of(dtype)[grid_of(dtype) > 0][0] == smallest


def test_wide_formats_overflow_to_infinity_where_rounding_says_so() -> None:
    below, at = 65519.99, 65520.0  # half way between 65504 and the 65536 that f16 lacks
    assert round_to(np.array(below), "f16") == 65504.0
    assert round_to(np.array(at), "f16") == np.inf
    assert round_to(np.array(-at), "f16") == -np.inf


def test_nan_is_the_canonical_one() -> None:
    nan = np.array([np.nan, -np.nan])
    for dtype, code in (("f16", 0x7FFF), ("bf16", 0x7FFF), ("f32", 0x7FFFFFFF), ("e4m3", 0x7F), ("e5m2", 0x7F)):
        assert encode(nan, dtype).tolist() == [code, code]
        assert np.isnan(decode(encode(nan, dtype), dtype)).all()
    assert round_to(nan, "e2m1").tolist() == [6.0, 6.0]  # no NaN to give


def test_scale_exponents() -> None:
    x = np.array([1.0, 1.0000001, 1.49, 1.5, 1.99, 2.0, 0.0, np.inf, np.nan, 2.0**-140, 2.0**-127])
    assert encode_e8m0(x, "ceil").tolist() == [127, 128, 128, 128, 128, 128, 0, 254, 255, 0, 0]
    assert encode_e8m0(x, "floor").tolist() == [127, 127, 127, 127, 127, 128, 0, 254, 255, 0, 0]
    assert encode_e8m0(x, "nearest").tolist() == [127, 127, 127, 128, 128, 128, 0, 254, 255, 0, 0]
    codes = np.arange(255, dtype=np.uint8)
    for rounding in ("ceil", "floor", "nearest"):
        np.testing.assert_array_equal(encode_e8m0(decode(codes, "e8m0"), rounding), codes)


def test_packing_puts_the_even_element_low() -> None:
    codes = np.array([[1, 2, 0xF, 0]], np.uint8)
    packed = pack_e2m1(codes)
    assert packed.tolist() == [[0x21, 0x0F]]
    np.testing.assert_array_equal(unpack_e2m1(packed), codes)


def test_shapes_are_kept() -> None:
    x = np.ones((2, 3, 4))
    for dtype in (*SMALL, "f32", "f64", "e8m0"):
        assert encode(x, dtype).shape == x.shape
        np.testing.assert_array_equal(decode(encode(x, dtype), dtype), x)
    assert formats.decode(np.zeros((0, 5), np.uint16), "bf16").shape == (0, 5)
