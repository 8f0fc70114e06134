"""Which sequence bound is the better one (Q2.least), and where the chain rule loses nothing (Q5.equality)."""

from __future__ import annotations

from .chain import Chain
from .registry import theorem
from .sequence import kl_chain, uniform, union, union_target

SHEET = "ours"


@theorem(
    "Q2.least",
    source=SHEET,
    statement=r"1 - W_T \le \min\Big(1,\ \mathbb{E}_{\tilde P} \sum \Delta,\ \mathbb{E}_P \sum \Delta,\ 1 - (1 - \delta)^T\Big)",
    relation="<=",
    hypotheses="any token rule, model, horizon, block size",
    status="proved",
)
def beaten(c: Chain) -> list[float]:
    """The bounds that the coupling bound never exceeds: 1, both union bounds and the uniform one."""
    return [1.0, union(c), union_target(c), uniform(c)]


@theorem(
    "Q5.equality",
    source="chain rule",
    statement=r"K \ge T \Rightarrow \mathrm{KL}(\tilde P \Vert P) = \sum_t \mathbb{E}_{\tilde P} \mathrm{KL}_t",
    relation="=",
    hypotheses="no bonus step: the tokens decide the engine's state up to its own coins",
    status="proved",
)
def kl_without_bonus(c: Chain) -> float:
    """The chain-rule sum in nats, which is the divergence itself where no bonus step hides the state."""
    return kl_chain(c)
