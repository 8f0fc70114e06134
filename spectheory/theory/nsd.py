"""NSD, Nucleus Speculative Decoding: its one-step deviation is exactly the draft's excess inside the nucleus.

Source: 2610.07822; N4 and N7 after Yin et al. 2411.00841. D = TV(p, q), Delta = sum over the nucleus of (q - p)_+.
"""

from __future__ import annotations

from ..arrays import Array, align, maximum, scalar, total, where, zeros_like
from ..pmf import nucleus
from .registry import theorem

NSD = "arXiv:2610.07822"


@theorem(
    "N1",
    source=NSD,
    statement=r"\mathrm{TV}(\tilde p, p) = \Delta := \sum_{x \in N} (q(x) - p(x))_+",
    relation="=",
    hypotheses="laws p, q; any top_p in [0, 1]; standard residual",
    status="proved",
)
def step_deviation(p: Array, q: Array, top_p: float) -> Array:
    """Delta, (...): how far one NSD step is from the target in total variation. Exact on Fractions."""
    p, q = align(p, q)
    excess = maximum(q - p, 0)
    return scalar(total(where(nucleus(p, top_p) & (excess >= 0), excess, zeros_like(excess))))
