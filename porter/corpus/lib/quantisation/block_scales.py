"""Blocks of 16 or 32 numbers of a row that share a scale of one byte (NVFP4, MXFP4, MXFP8), and where it lies."""

from dataclasses import dataclass

from cutlass import Float32, Int64, Uint8, Uint32

from porter.corpus.lib.floats import div_rn, fmin, mul_rn, rcp_approx_ftz
from porter.corpus.lib.integers import select
from porter.corpus.lib.memory import view
from porter.corpus.lib.packed import CACHED, load_words, pack_e4m3, store_words
from porter.corpus.lib.quantisation.group_scales import group_absmax
from porter.corpus.lib.quantisation.narrow_floats import (
    E2M1_MAX,
    e8m0_down,
    e8m0_up,
    from_e8m0,
    pack_e2m1,
    unpack_e2m1,
    unpack_e4m3,
)
from porter.corpus.library import add_old_names

_LARGEST = 3.4028234663852886e38
_MOST = {"e2m1": E2M1_MAX, "e4m3": 448.0}
_TOP_EXPONENT = {"e2m1": 2, "e4m3": 8}
TILE_ROWS = {"linear": 1, "8x4": 8, "128x4": 128}


@dataclass(frozen=True)
class BlockScales:
    """Static choices. codes: "e2m1" or "e4m3".  group: numbers of a scale.  scales: "e4m3" (of a tensor with a scale
    of its own), or "e8m0".  layout: "linear", "128x4" or "8x4" (tiles, padded with zeros).
    rule: of e4m3 scales "fast" (approximate reciprocals) or "exact", of e8m0 scales "ceil" or "floor".
    hardware: the architecture converts to e2m1 and ue8m0.  length: numbers of a row.  held: dtype of scales in memory.
    """

    codes: str
    group: int
    scales: str
    layout: str
    rule: str
    hardware: bool
    length: int
    held: str = "u8"

    @property
    def columns(self) -> int:
        """Bytes of scales of a row, those that fill up a tile among them."""
        blocks = self.length // self.group
        return blocks if self.layout == "linear" else -(-blocks // 4) * 4

    def code_bytes(self, count: int) -> int:
        """Bytes of so many codes."""
        return count // 2 if self.codes == "e2m1" else count

    def argument(self):
        """What a kernel's signature says of the scales' tensor: (dtype, shape, strides, alignment)."""
        width = self.columns // (4 if self.held == "i32" else 1)
        return self.held, ("T" if self.layout == "linear" else "S", width), (width, 1), 4

    def encode(self, values, given=None):
        """(words of codes, word of scales) of a thread's Float32 values: one block or several, or part of one whose
        other parts neighbouring lanes have; then all of them get its scale. given: the tensor's scale, of e4m3 scales.

        NaN is passed over by scales; its code is the largest, 6 or 448.
        """
        each, lanes = min(self.group, len(values)), max(1, self.group // len(values))
        scaled, word = [], Uint32(0)
        for i in range(0, len(values), each):
            block = values[i : i + each]
            largest = group_absmax(block, lanes)
            code, inverse = self._shared(largest, given) if self.scales == "e4m3" else self._power(largest)
            word = word | (code << (8 * (i // each))) if i else code
            scaled += [v * inverse for v in block]
        return pack_e2m1(scaled, self.hardware, True) if self.codes == "e2m1" else pack_e4m3(scaled), word

    def _shared(self, largest, given):
        """(e4m3 code of a block's scale, what its values are multiplied by)."""
        if self.rule == "exact":
            scale = fmin(mul_rn(div_rn(largest, Float32(E2M1_MAX)), given), Float32(_LARGEST))
        else:
            scale = mul_rn(given, mul_rn(largest, Float32(1.0 / E2M1_MAX)))
        (code,) = pack_e4m3([scale], clamp=False)
        code = code & Uint32(0xFF)
        held = unpack_e4m3((code,), 2)[0]
        if self.rule == "exact":
            return code, fmin(div_rn(given, held), Float32(_LARGEST))
        inverse = rcp_approx_ftz(mul_rn(held, rcp_approx_ftz(given)))
        return code, select(held == Float32(0.0), Float32(0.0), inverse)

    def _power(self, largest):
        """(ue8m0 code of a block's scale, its reciprocal; 0 for e4m3 codes with the least scale)."""
        if self.rule == "ceil":
            code = e8m0_up(mul_rn(largest, Float32(1.0 / _MOST[self.codes])), self.hardware)
        else:
            code, top = e8m0_down(largest, self.hardware), Uint32(_TOP_EXPONENT[self.codes])
            code = select(code > top, code - top, Uint32(0))
        inverse = from_e8m0(Uint32(254) - code, self.hardware)
        if self.codes == "e4m3":
            inverse = select(code == Uint32(0), Float32(0.0), inverse)
        return code, inverse

    def decode(self, words, count, word, given=None):
        """`count` Float32 numbers of a thread's words of codes and word of scales: code * (scale / given), or
        code * scale, rounded to nearest. ue8m0's 255 gives NaN."""
        codes = unpack_e2m1(words, self.hardware) if self.codes == "e2m1" else unpack_e4m3(words, count)
        values, each = [], min(self.group, count)
        for i in range(0, count, each):
            code = (word >> (8 * (i // each))) & Uint32(0xFF)
            if self.scales == "e4m3":
                factor = div_rn(unpack_e4m3((code,), 2)[0], given)
            else:
                factor = from_e8m0(code, self.hardware)
            values += [mul_rn(v, factor) for v in codes[i : i + each]]
        return values

    def load(self, mS, row, col, count):
        """The scales of `count` blocks from column `col` of a row on, a word (one access)."""
        if count == 1:
            return Uint32(Uint8(self.scale_ptr(mS, row, col).load()))
        return load_words(self.scale_ptr(mS, row, col), count, CACHED)[0]

    def scale_ptr(self, mS, row, col):
        """Pointer to the byte of the scale of column `col` of a row."""
        m, k = Uint32(row), Uint32(col) // self.group
        tile_bytes, tiles = 4 * TILE_ROWS[self.layout], self.columns // 4
        if self.layout == "linear":
            offset = Int64(m) * self.columns + Int64(k)
        else:
            within = (m % 32) * 16 + ((m % 128) // 32) * 4 if self.layout == "128x4" else (m % 8) * 4
            tile = Int64(m // TILE_ROWS[self.layout]) * tiles + Int64(k // 4)
            offset = tile * tile_bytes + Int64(within + k % 4)
        return view(mS.iterator, Uint8) + offset

    def store(self, mS, row, col, word, count):
        """Write the scales of `count` blocks from column `col` of a row on (one access)."""
        store_words(self.scale_ptr(mS, row, col), (word,), count)


add_old_names(__name__)
