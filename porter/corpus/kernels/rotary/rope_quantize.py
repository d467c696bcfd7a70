"""Rotary embedding to e4m3 of heads whose rotated and other elements are tensors of their own (latent attention)."""

from dataclasses import dataclass, replace

import cutlass.cute as cute
from cutlass import Float32, Int32

from porter.corpus.kernels.rotary.rotary_fp8 import RotaryFp8
from porter.corpus.runtime.dtypes import dtype as scalar
from porter.corpus.runtime.signature import Scalar, written


@dataclass(frozen=True)
class RopeQuantize(RotaryFp8):
    """Static choices beside those of RotaryFp8, whose heads turn as a whole here.

    nope: elements of a head that do not turn, `rest` of them an access.  qn_stride, kn_stride: elements from head to
    head of them; qno_stride, kno_stride: of their results.  nope_align, nope_out_align: bytes of an access at most.
    one_key: the tensors of k are (T, D) and (T, E).
    """

    nope: int = 1
    qn_stride: int = 0
    kn_stride: int = 0
    qno_stride: int = 0
    kno_stride: int = 0
    nope_align: int = 16
    nope_out_align: int = 1
    one_key: bool = False

    @property
    def others(self):
        """The choices for the elements that do not turn."""
        return replace(
            self, head_size=self.nope, q_stride=self.qn_stride, k_stride=self.kn_stride, qo_stride=self.qno_stride,
            ko_stride=self.kno_stride, align=self.nope_align, out_align=self.nope_out_align,
        )  # fmt: skip

    def arguments(self):
        q_out, key_out, positions, query, key, table, *_ = super().arguments()
        like, align = self.others, min(self.nope_align, self.rest * scalar(self.dtype).bytes)
        out = min(self.nope_out_align, self.rest)
        parts = [written(like.heads_of("e4m3", self.q_heads, self.qno_stride, out)),
                 written(like.heads_of("e4m3", self.k_heads, self.kno_stride, out)),
                 like.heads_of(self.dtype, self.q_heads, self.qn_stride, align),
                 like.heads_of(self.dtype, self.k_heads, self.kn_stride, align)]  # fmt: skip
        if self.one_key:
            key, key_out, parts[1], parts[3] = (_of_one_head(t) for t in (key, key_out, parts[1], parts[3]))
        return q_out, key_out, positions, query, key, table, *parts, Scalar("f32"), Scalar("f32")

    @cute.jit
    def __call__(
        self,
        mQO: cute.Tensor,  # (T, q heads, rot) e4m3
        mKO: cute.Tensor,  # (T, k heads, rot) e4m3
        mPos: cute.Tensor,  # (T,) int64
        mQ: cute.Tensor,  # (T, q heads, rot)
        mK: cute.Tensor,  # (T, k heads, rot)
        mCS: cute.Tensor,  # (positions, rot): cosines, then sines
        mQNO: cute.Tensor,  # (T, q heads, nope) e4m3
        mKNO: cute.Tensor,  # (T, k heads, nope) e4m3
        mQN: cute.Tensor,  # (T, q heads, nope)
        mKN: cute.Tensor,  # (T, k heads, nope)
        q_scale: Float32,  # factors of the results
        k_scale: Float32,
        blocks: Int32,
        stream,
    ):
        self.kernel(mQO, mKO, mPos, mQ, mK, mCS, mQNO, mKNO, mQN, mKN, q_scale, k_scale).launch(
            grid=(blocks, 1, 1), block=(self.threads, 1, 1), stream=stream, use_pdl=self.pdl
        )

    @cute.kernel
    def kernel(
        self,
        mQO: cute.Tensor,
        mKO: cute.Tensor,
        mPos: cute.Tensor,
        mQ: cute.Tensor,
        mK: cute.Tensor,
        mCS: cute.Tensor,
        mQNO: cute.Tensor,
        mKNO: cute.Tensor,
        mQN: cute.Tensor,
        mKN: cute.Tensor,
        q_scale: Float32,
        k_scale: Float32,
    ):
        self.work(mQO, mKO, mPos, mQ, mK, mCS, (mQNO, mKNO, mQN, mKN), q_scale, k_scale)

    def scale_rest(self, others, token, head, slot, scale):
        """The elements of a head that do not turn, spread over its threads."""
        like, n = self.others, self.rest
        count = self.nope // n
        for i in range(0, count, self.slots):
            inside = True if i + self.slots <= count else slot + i < count
            like.scale_some(*others, token, head, (slot + i) * n, inside, scale, others[2].element_type, n)


def _of_one_head(t):
    """(T, length) of a declared (T, 1, length)."""
    return replace(t, shape=(t.shape[0], t.shape[2]), stride=(t.stride[0], t.stride[2]))
