"""Which known fault is it? The one whose exact law fits the counts of every test, and fits them best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import CostError, DataError
from ...exact import block_law, output_law
from ...montecarlo.multinomial import deviation_interval
from ...protocols import supports
from ...verifiers import RULES, example, names
from ...verifiers.broken import specimens
from ...verifiers.token import drafted
from .plan import Trial
from .scenario import Scenario
from .specimens import JOINT_FAULTS, STALE_BONUS

# Two faults whose likelihoods differ by less than a factor of 1,000 are both named.
CLEAR = float(np.log(1000.0))


@dataclass(frozen=True)
class Fit:
    """A fault that fits: `behind` is the log-likelihood lost against the best fit (0 for the best), in nats.

    `evidence` names, for the test that shows the fault best, TV from the target and TV from the fault's exact law.
    """

    fault: str
    behind: float
    tests: int
    evidence: str


def name_faults(trials: list[Trial], counts: Mapping[str, Any]) -> list[Fit]:
    """The faults that no test rejects, best first, down to those clearly less likely.

    Where none fits every test, those that fit every test of a single step: then the blocks show a further fault.
    Empty if none fits.
    """
    steps = [t for t in trials if t.scenario.length == 1]
    return _fitting(trials, counts) or [
        replace(f, fault=f"{f.fault} (and more in blocks)") for f in _fitting(steps, counts)
    ]


def _fitting(trials: list[Trial], counts: Mapping[str, Any]) -> list[Fit]:
    """The best fits among `candidates` on these tests alone, if the target itself does not fit them."""
    off = {t.scenario.name for t in trials if _off_target(t, counts)}
    if not off:
        return []
    fits = []
    for fault, rule in candidates():
        scored = _score(rule, trials, counts, off)
        if scored is not None:
            fits.append((scored, fault))
    if not fits:
        return []
    best = max(score for (score, _, _), _ in fits)
    named = [Fit(fault, best - s, tests, evidence) for (s, tests, evidence), fault in fits if best - s < CLEAR]
    return sorted(named, key=lambda f: f.behind)


def _off_target(trial: Trial, counts: Mapping[str, Any]) -> bool:
    seen = np.asarray(counts.get(trial.scenario.name, (0,)))
    if not seen.sum():
        return False
    return deviation_interval(seen, trial.scenario.law(), trial.design.alpha, trial.design.method).rejected


def candidates() -> list[tuple[str, Any]]:
    """(fault, rule) of every known fault and documented lossy rule whose law exists on any pair.

    A fault tied to its own pair is left out. The lossy rules have their example settings.
    """
    wrong = [(s.fault, s.rule) for s in specimens().values() if not s.lossless and not hasattr(s.rule, "law")]
    joint = [(fault, rule) for rule, fault in [*JOINT_FAULTS.values(), STALE_BONUS]]
    listed = [rule for _, rule in wrong]
    lossy = [(f"the lossy rule {_title(name)}", example(name)) for name in names()]
    lossy = [(text, rule) for text, rule in lossy if "acceptance" in supports(rule) and not _listed(rule, listed)]
    return list(dict([*wrong, *joint, *lossy]).items())


def _title(name: str) -> str:
    settings = ", ".join(f"{k}={v}" for k, v in RULES[name][2].items())
    return f"{name}({settings})" if settings else name


def _listed(rule: Any, listed: list[Any]) -> bool:
    """True if a specimen is this very rule."""
    return any(type(other) is type(rule) and vars(other) == vars(rule) for other in listed)


def law_under(rule: Any, scenario: Scenario) -> Any:
    """Exact law (N,) of a scenario's counts under `rule`; None where it cannot be had exactly."""
    model = scenario.model
    p, q = model.target[model.initial], model.draft[model.initial]
    if scenario.kind == "drafts":
        return np.asarray(drafted(rule, p, q))
    try:
        if scenario.kind == "calls" or scenario.length == 1:
            law = np.asarray(output_law(rule, p, q))
            return np.outer(law, law).ravel() if scenario.kind == "calls" else law
        if getattr(rule, "joint", None) is not None or "outcomes" not in supports(rule):
            return None  # shared randomness: `outcomes` would describe a block with independent coins
        law = np.asarray(block_law(rule, model, block_size=scenario.block).tokens)
        return law.sum(axis=tuple(range(scenario.length, law.ndim))).ravel()
    except (CostError, DataError):
        return None


def _score(rule: Any, trials: list[Trial], counts: Mapping[str, Any], off: set[str]) -> tuple[float, int, str] | None:
    """(log-likelihood against the target's, tests compared, evidence).

    None if some test rejects the fault, or if its law is known for none of the tests `off` that reject the target.
    """
    score, compared, explained, shown = 0.0, 0, False, (0.0, "")
    for trial in trials:
        seen = np.asarray(counts.get(trial.scenario.name, ()))
        if not seen.sum():
            continue
        law, null = law_under(rule, trial.scenario), trial.scenario.law()
        if law is None:
            continue
        if deviation_interval(seen, law, trial.design.alpha, trial.design.method).rejected:
            return None
        hit = seen > 0
        # a cell that the target cannot fill speaks for the fault, but is scored as if it were merely very rare
        score += float((seen[hit] * (np.log(law[hit]) - np.log(np.maximum(null[hit], 1e-12)))).sum())
        compared, explained = compared + 1, explained or trial.scenario.name in off
        tv = 0.5 * float(abs(seen / seen.sum() - null).sum())
        if tv >= shown[0]:
            own = 0.5 * float(abs(seen / seen.sum() - law).sum())
            shown = (
                tv,
                f"{trial.scenario.name}: observed TV {tv:.4f} from the target, {own:.4f} from this fault's exact law",
            )
    return (score, compared, shown[1]) if explained else None
