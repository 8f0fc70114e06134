"""The audit against slow definitions: per row, per block, per request; shards, resume, bad data."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from recordings import make_blocks, record

import spectheory as spec
from spectheory import Block, DataError, Truncated, UsageError, audit, logits, pmf
from spectheory.audit.summary import contract, figure
from spectheory.verifiers import Nucleus, Standard, example
from spectheory.verifiers.token import TokenRule, capped_ratio


class Plain(TokenRule):
    """NSD written by a stranger: the generic path of the audit must give what the fused one gives."""

    SWEEP = Nucleus.SWEEP

    def __init__(self, top_p):
        self.top_p = top_p

    def acceptance(self, p, q):
        return Nucleus(self.top_p).acceptance(p, q)


# Degenerate first.


@pytest.mark.parametrize("rule", [Standard(), Nucleus(0.9), Plain(0.9), example("typical")])
def test_equal_laws_disjoint_supports_and_one_token(rule):
    p = np.array([[0.5, 0.5, 0, 0]] * 2)
    blocks = [
        Block([0], np.ones((2, 1)), np.ones((1, 1))),
        Block([1], np.array([[0.25, 0.75]] * 2), np.array([[0.25, 0.75]])),
        Block([3], p, np.array([[0, 0, 0.5, 0.5]])),
    ]
    report = audit.run(rule, blocks)
    assert report.errors == []
    assert report.rows["tv"] == pytest.approx([0, 0, 1])
    assert report.rows["acceptance"][0] == 1
    assert report.rows["deviation"][0] == 0
    assert all(math.isfinite(x) for x in report.rows["deviation"])
    json.loads(report.dumps())


def test_nothing_to_audit():
    with pytest.raises(DataError, match="no block to audit"):
        audit.run(Standard(), [])
    report = audit.run(Standard(), [Block([], np.ones((1, 2)) / 2, np.ones((0, 2)))])
    assert report.verdict == "no data"
    assert "K = 0" in report.errors[0]["cause"]
    assert audit.exit_code(report) == 4


# Per row.


def test_every_registered_rule_is_audited_exactly(token_rule):
    blocks = make_blocks(4, 20)
    report = audit.run(token_rule, blocks)
    p, q = (np.concatenate(x) for x in zip(*((b.p[: b.size], b.q) for b in blocks)))
    law = spec.exact.output_law(token_rule, p, q)
    assert report.errors == []
    assert report.rows["deviation"] == pytest.approx(abs(p - law).sum(axis=1) / 2, abs=1e-12)
    assert report.rows["acceptance"] == pytest.approx((q * token_rule.acceptance(p, q)).sum(axis=1), abs=1e-12)


def test_rows_are_the_exact_engine_row_by_row():
    blocks = make_blocks()
    for rule in (
        Standard(),
        Nucleus(0.8),
        Plain(0.8),
        example("lenience"),
        example("sample-and-match"),
        example("cactus"),
    ):
        rows = audit.run(rule, blocks).rows
        at = 0
        for block in blocks:
            for i in range(block.size):
                p, q = block.p[i], block.q[i]
                law = spec.exact.output_law(rule, p, q)
                assert rows["tv"][at] == pytest.approx(abs(p - q).sum() / 2, abs=1e-12)
                assert rows["deviation"][at] == pytest.approx(abs(p - law).sum() / 2, abs=1e-12)
                assert rows["acceptance"][at] == pytest.approx((q * rule.acceptance(p, q)).sum(), abs=1e-12)
                assert rows["accept_drafted"][at] == pytest.approx(rule.acceptance(p, q)[block.tokens[i]], abs=1e-12)
                assert rows["kl_target_output"][at] == pytest.approx((p * np.log(p / law)).sum(), abs=1e-9)
                assert rows["kl_output_target"][at] == pytest.approx((law * np.log(law / p)).sum(), abs=1e-9)
                assert rows["max_ratio"][at] == pytest.approx((law / p).max(), rel=1e-9)
                assert rows["nucleus_size"][at] == pmf.nucleus_size(p, getattr(rule, "top_p", 0.9))
                shift = law - p
                if shift.max() > 1e-9:
                    assert rows["gained"][at][0] == shift.argmax()
                    assert rows["gained_mass"][at][0] == pytest.approx(shift.max())
                    assert rows["lost"][at][0] == shift.argmin()
                at += 1
        assert at == len(rows["tv"])


def test_fused_and_generic_paths_agree():
    ours, theirs = (audit.run(rule, make_blocks()) for rule in (Nucleus(0.9), Plain(0.9)))
    for name, column in ours.rows.items():
        if name in ("gained", "lost", "deviation_min", "deviation_max"):
            continue
        other = theirs.rows[name]
        assert (column == other).all() if column.dtype.kind not in "f" else column == pytest.approx(other, abs=1e-9), (
            name
        )


def test_sweep_is_the_rule_at_each_value():
    report = audit.run(Nucleus(0.9), make_blocks())
    for point in report.sweep:
        alone = audit.run(Nucleus(point["value"]), make_blocks(), sweep=False)
        for name in ("deviation", "acceptance"):
            assert point[name]["on_data"].upper == pytest.approx(alone.summary[name]["on_data"].upper, abs=1e-12)


def test_rounding_band_holds_every_law_within_it():
    """Laws within tv_floor of the stored ones, by uniform noise on the logits, have nuclei and NSD deviations in the band."""
    rng, floor = np.random.default_rng(3), 2e-3

    class Source(list):
        manifest = MappingProxyType({"tv_floor": floor})

    blocks = make_blocks(4, 200, 4)
    rows = audit.run(Nucleus(0.9), Source(blocks)).rows
    assert (rows["nucleus_min"] < rows["nucleus_max"]).any()
    at = 0
    for block in blocks:
        for i in range(block.size):
            for _ in range(20):
                p, q = (x * np.exp(rng.uniform(-floor, floor, x.shape)) for x in (block.p[i], block.q[i]))
                p, q = p / p.sum(), q / q.sum()
                assert max(abs(p - block.p[i]).sum() / 2, abs(q - block.q[i]).sum() / 2) <= floor
                assert rows["nucleus_min"][at] <= pmf.nucleus_size(p, 0.9) <= rows["nucleus_max"][at]
                deviation = spec.theory.nsd.step_deviation(p, q, 0.9)
                assert rows["deviation_min"][at] <= deviation <= rows["deviation_max"][at]
            at += 1


def test_truncated_rows_give_certified_intervals():
    rng, blocks, full = np.random.default_rng(0), [], []
    for _ in range(6):
        p, q = pmf.softmax(rng.normal(size=(2, 3, 80)) * 3)
        ids = np.argsort(-(p + q), axis=-1)[:, :30]
        kept = np.zeros_like(p, bool)
        np.put_along_axis(kept, ids, True, -1)
        rest = [np.where(kept, 0, x) for x in (p, q)]
        rows = Truncated(
            ids, np.take_along_axis(p, ids, -1), np.take_along_axis(q, ids, -1), rest[0].sum(-1), rest[1].sum(-1),
            rest[0].max(-1), rest[1].max(-1),
        )  # fmt: skip
        tokens = ids[:, 0]
        blocks.append(Block(tokens, truncated=rows))
        full.append(Block(tokens, np.vstack([p, p[:1]]), q))
    for rule in (Standard(), Nucleus(0.9)):
        report, exact = audit.run(rule, blocks), audit.run(rule, full)
        for name in ("tv", "acceptance", "deviation"):
            low, high = report.rows[name], report.rows[f"{name}_upper"]
            assert (low <= exact.rows[name] + 1e-12).all()
            assert (exact.rows[name] <= high + 1e-12).all()
        assert report.summary["tv"]["on_data"].kind == "certified"
        json.loads(report.dumps())
    straddles = audit.run(Nucleus(0.9), blocks, max_deviation=exact.summary["deviation"]["on_data"].upper)
    assert straddles.verdict == "undecided"
    assert audit.exit_code(straddles) == 3
    refused = audit.run(example("typical"), blocks)
    assert "needs the whole vocabulary" in refused.errors[0]["cause"]


# Per block, per request.


def test_expected_tokens_by_enumeration_of_the_coins():
    for accept, ends in [
        ([0.5], None),
        ([0.5, 0.25, 1.0], None),
        ([0.5, 0.25, 0.5], [False, True, False]),
        ([0.3], [True]),
    ]:
        expected = 0.0
        for pattern in range(2 ** len(accept)):
            coins = [bool(pattern >> i & 1) for i in range(len(accept))]
            weight = math.prod(a if c else 1 - a for a, c in zip(accept, coins))
            accepted = next((i for i, c in enumerate(coins) if not c), len(coins))
            tokens = [int(bool(ends and ends[i])) for i in range(accepted)] + [0]
            verdict = audit.truncate_at_eos(spec.Verdict(accepted, np.array(tokens)), [1])
            expected += weight * len(verdict.tokens)
        assert audit.expected_tokens(accept, ends) == pytest.approx(expected)


def test_six_tokens_counted_three_committed():
    verdict = spec.Verdict(5, np.array([7, 8, 2, 9, 9, 4]))
    cut = audit.truncate_at_eos(verdict, [2])
    assert cut.tokens.tolist() == [7, 8, 2]
    assert cut.accepted == 3
    assert audit.truncate_at_eos(verdict, []) is verdict
    ends_with_correction = audit.truncate_at_eos(spec.Verdict(2, np.array([7, 8, 2])), [2])
    assert ends_with_correction.accepted == 2


def test_rows_behind_an_end_of_text_are_counted_apart():
    p, q = np.full((5, 4), 0.25), np.array([[0.7, 0.1, 0.1, 0.1]] * 4)

    class Source(list):
        manifest = MappingProxyType({"eos_ids": [2]})

    summary = audit.run(Standard(), Source([Block([0, 2, 1, 1], p, q)])).summary
    assert summary["after_eos"]["rows_behind_eos"] == 2
    accept = capped_ratio(p[0], q[0])
    assert summary["tokens_per_call"]["on_data"].upper == pytest.approx(accept[0] + 1)  # the end itself is always kept


def test_population_interval_counts_requests_not_rows():
    """Copying every row of a request 50 times adds no information: the interval must not move."""
    blocks = make_blocks(8, requests=4)
    once, often = audit.run(Nucleus(0.9), blocks), audit.run(Nucleus(0.9), blocks * 50)
    a, b = (r.summary["deviation"]["population"] for r in (once, often))
    assert (a.lower, a.estimate, a.upper) == pytest.approx((b.lower, b.estimate, b.upper))
    assert a.kind == "statistical"
    assert a.alpha == 0.05
    assert often.summary["deviation"]["standard_error"] == pytest.approx(once.summary["deviation"]["standard_error"])


def test_population_interval_covers():
    """Of 400 audits of 24 dependent requests, the 95 % interval misses at most as often as it may: false alarm 1e-9."""
    from scipy.stats import binom

    rng, missed = np.random.default_rng(5), 0
    for _ in range(400):
        x = np.repeat(rng.beta(3, 7, size=24), 10)
        missed += 0.3 not in figure(x, np.repeat(np.arange(24), 10), None, (0.0, 1.0))["population"]
    assert missed <= binom.isf(1e-9, 400, 0.05)


def test_block_rules_earn_what_their_outcomes_say():
    """Tokens per call by enumeration; a token rule given as a block rule earns what the token audit says."""

    class AsBlocks:
        def start(self):
            return None

        def outcomes(self, block, state):
            return Standard().outcomes(block)

    blocks = make_blocks()
    report = audit.run(AsBlocks(), blocks)
    alone = audit.run(Standard(), blocks).summary["tokens_per_call"]["on_data"].upper
    assert report.summary["tokens_per_call"]["on_data"].upper == pytest.approx(alone)
    assert report.summary["standard_tokens_per_call"]["on_data"].upper == pytest.approx(alone)
    report = audit.run(example("block"), blocks)
    rule, total = example("block"), 0.0
    for block in blocks:
        total += sum(weight * (accepted + 1) for weight, accepted, *_ in rule.outcomes(block))
    assert report.summary["tokens_per_call"]["on_data"].upper == pytest.approx(total / len(blocks))
    with pytest.raises(UsageError, match="decides whole blocks"):
        audit.run(rule, blocks, max_deviation=0)
    without_bonus = Block(blocks[0].tokens, blocks[0].p[:-1], blocks[0].q)
    assert "bonus row" in audit.run(rule, [*blocks, without_bonus]).errors[0]["cause"]


# The contract: drafts follow q.


def test_drafts_from_another_law_are_found():
    """False alarm 1e-6 by construction; here the drafts are greedy, or come from q at temperature 0.6."""
    honest = audit.run(Standard(), make_blocks(100))
    assert not honest.summary["drafts_follow_q"]["refuted"]
    greedy = [Block(b.q.argmax(-1), b.p, b.q) for b in make_blocks(40)]
    report = audit.run(Standard(), greedy)
    assert report.summary["drafts_follow_q"]["refuted"]
    assert "do not follow the declared q" in report.errors[-1]["cause"]
    assert audit.exit_code(report) == 4
    rng = np.random.default_rng(0)
    sharp = [
        Block(np.array([rng.choice(60, p=pmf.softmax(np.log(row), 0.6)) for row in b.q]), b.p, b.q)
        for b in make_blocks(300)
    ]
    assert audit.run(Standard(), sharp, sweep=False).summary["drafts_follow_q"]["refuted"]


def test_contract_statistic_is_kolmogorovs():
    from scipy.stats import kstest

    u = np.random.default_rng(1).random(200) ** 1.2
    assert contract(u)["distance"] == pytest.approx(kstest(u, "uniform").statistic)


def test_greedy_recordings_are_audited_under_the_law_really_drafted_from():
    class Source(list):
        manifest = MappingProxyType({"draft_mode": "greedy"})

    blocks = [Block(b.q.argmax(-1), b.p, b.q) for b in make_blocks(6)]
    report = audit.run(example("sample-and-match"), Source(blocks))
    assert report.summary["deviation"]["on_data"].upper == pytest.approx(0, abs=1e-12)
    assert report.summary["acceptance"]["on_data"].upper == pytest.approx(
        np.mean([b.p[i, t] for b in blocks for i, t in enumerate(b.tokens)])
    )
    assert report.summary["drafts_follow_q"] == {"tested": 0, "refuted": False}


# Request settings.


def test_request_settings_filter_both_sides(tmp_path):
    """The same whether the reader applies them or the audit does."""
    path = record(tmp_path / "rec", n=10)
    settings = {"temperature": 0.7, "top_k": 20}
    report = audit.run(Nucleus(0.9), path, request=settings)
    at = 0
    for rows in logits.read(path).rows():
        for i, _ in enumerate(rows.tokens):
            p, q = (pmf.warp(z[i], **settings) for z in (rows.target, rows.draft))
            assert report.rows["tv"][at] == pytest.approx(pmf.total_variation(p, q), abs=1e-12)
            at += 1
    blocks = [Block(b.tokens, b.p, b.q, b.logits, info={"request": b.info["request"]}) for b in logits.read(path)]
    again = audit.run(Nucleus(0.9), blocks, request=settings)
    assert again.rows["deviation"] == pytest.approx(report.rows["deviation"], abs=1e-9)
    assert report.summary["tokens_per_call"]["given"] == "recorded contexts"
    assert report.source["request"] == settings
    with pytest.raises(UsageError, match="unknown request setting 'seed'"):
        audit.run(Standard(), path, request={"seed": 1})
    with pytest.raises(UsageError, match="temperature"):
        audit.run(Standard(), blocks, request={"temperature": -1})


# Claims.


def test_claims():
    blocks = make_blocks()
    held = audit.run(Standard(), blocks, max_deviation=0)
    assert held.claim.startswith("lossless")
    assert (held.verdict, audit.exit_code(held)) == ("holds", 0)
    refuted = audit.run(Nucleus(0.9), blocks, max_deviation=0.02)
    assert (refuted.verdict, audit.exit_code(refuted)) == ("refuted", 1)
    assert audit.run(Nucleus(0.9), blocks, max_deviation=1).verdict == "holds"
    assert audit.run(Nucleus(0.9), blocks).verdict == "no claim"
    with pytest.raises(UsageError, match="max-deviation"):
        audit.run(Standard(), blocks, max_deviation=-0.1)


@pytest.mark.parametrize("name", ["standard", "sample-and-match"])
def test_lossless_rules_hold_their_claim_on_real_rows(name):
    assert audit.run(example(name), max_deviation=0).verdict == "holds"


# Rules that break their own contract.


@dataclass(frozen=True)
class Broken:
    accept: float = 0.5
    mass: float = 1.0

    def acceptance(self, p, q):
        return np.full(p.shape, self.accept)

    def residual(self, p, q):
        return self.mass * p


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Broken(accept=1.5), "acceptance 1.5 at position 0, token 0 is no probability"),
        (Broken(accept=float("nan")), "is no probability"),
        (Broken(mass=0.5), "sums to 0.75, not 1"),
        (object(), "not a token rule"),
    ],
)
def test_rules_that_break_their_contract_are_usage_errors(rule, message):
    with pytest.raises(UsageError, match=message):
        audit.run(rule, make_blocks(2))


# Shards, resume, bad data.


def same(a, b):
    assert a.to_json() == b.to_json()
    assert set(a.rows) == set(b.rows)
    for name, column in a.rows.items():
        assert np.array_equal(column, b.rows[name], equal_nan=column.dtype.kind == "f"), name


def test_shards_audited_apart_and_joined_give_the_identical_report(tmp_path):
    path = record(tmp_path / "rec")
    shards = logits.read(path).shards
    assert len(shards) > 2
    whole = audit.run(Nucleus(0.9), path, max_deviation=0.1)
    parts = [audit.run(Nucleus(0.9), path, max_deviation=0.1, shards=[s]) for s in reversed(shards)]
    same(audit.join(parts), whole)
    with pytest.raises(UsageError, match="overlap"):
        audit.join([*parts, parts[0]])
    other = audit.run(Nucleus(0.8), path, max_deviation=0.1, shards=[shards[0]])
    with pytest.raises(UsageError, match="different verifiers"):
        audit.join([parts[0], other])
    with pytest.raises(UsageError, match="no shard is called"):
        audit.run(Standard(), path, shards=["nope"])


def test_a_rerun_reads_no_finished_shard_again(tmp_path, monkeypatch):
    path, out = record(tmp_path / "rec"), tmp_path / "out"
    expected = audit.run(Nucleus(0.9), path)
    shards = len(logits.read(path).shards)

    def stop(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit.run(Nucleus(0.9), path, out=out, progress=stop)
    read = []
    decode = logits.Reader.blocks
    monkeypatch.setattr(logits.Reader, "blocks", lambda self, i=None: read.append(i) or decode(self, i))
    resumed = audit.run(Nucleus(0.9), path, out=out)
    assert read == list(range(2, shards))
    same(resumed, expected)
    read.clear()
    audit.run(Nucleus(0.8), path, out=out)  # another rule: nothing of this may be reused
    assert read == list(range(shards))
    audit.write(resumed, out)
    assert not (out / ".parts").exists()


def test_damaged_parts_are_computed_again(tmp_path):
    path, out = record(tmp_path / "rec"), tmp_path / "out"
    expected = audit.run(Nucleus(0.9), path, out=out)
    for i, part in enumerate(sorted((out / ".parts").iterdir())):
        part.write_bytes(part.read_bytes()[: 100 * i])
    same(audit.run(Nucleus(0.9), path, out=out), expected)


def test_a_killed_process_is_resumed(tmp_path):
    """SIGKILL in the middle: whatever parts exist are whole, and the rerun gives the report of an undisturbed one."""
    path, out = record(tmp_path / "rec", n=100, vocab=1000), tmp_path / "out"
    code = f"from spectheory import audit; audit.run(audit.load_rule('mentored', {{'alpha': .5}}), {str(path)!r}, out={str(out)!r})"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": "1"})
    deadline = time.monotonic() + 60
    while len(list((out / ".parts").glob("*.npz"))) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "the audit ended before it could be killed"
    assert len(list((out / ".parts").glob("*.npz"))) >= 2, "nothing was there to resume"
    rule = audit.load_rule("mentored", {"alpha": 0.5})
    same(audit.run(rule, path, out=out), audit.run(rule, path))


def test_a_full_disk_costs_the_cache_not_the_audit(tmp_path, monkeypatch):
    path = record(tmp_path / "rec")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    report = audit.run(Nucleus(0.9), path, out=tmp_path / "out")
    assert report.errors == []
    assert list((tmp_path / "out" / ".parts").glob("*")) == []


def test_bad_shards_and_rows_are_named_and_the_good_ones_reported(tmp_path):
    path = record(tmp_path / "rec")
    whole = audit.run(Standard(), path)
    shards = logits.read(path).shards
    content = (path / shards[1]).read_bytes()
    (path / shards[1]).write_bytes(content[:-7])
    (path / shards[2]).unlink()
    report = audit.run(Standard(), path, max_deviation=0)
    assert [e["shard"] for e in report.errors] == shards[1:3]
    assert "corrupt" in report.errors[0]["cause"]
    assert "no such file" in report.errors[1]["cause"]
    assert audit.exit_code(report) == 4
    kept = ~np.isin(whole.rows["shard"], shards[1:3])
    assert np.array_equal(report.rows["tv"], whole.rows["tv"][kept])


def test_bad_blocks_are_named_and_the_good_ones_reported():
    good = make_blocks(4)
    nan = Block(good[0].tokens, good[0].p * np.nan, good[0].q)
    wrong = Block([60, 0, 0], good[0].p, good[0].q)
    undrawn = Block([0, 1, 2], good[0].p, np.tile(np.eye(60)[3], (3, 1)))
    short = Block([0, 1, 2], good[0].p[:2], good[0].q)
    report = audit.run(Nucleus(0.9), [good[0], nan, good[1], wrong, undrawn, short, Block([1]), good[2]])
    causes = [e["cause"] for e in report.errors]
    assert len(causes) == 5
    for cause, expected in zip(
        causes, ["NaN", "outside [0, 60)", "draft probability 0", "K = 3 drafts need", "no laws"]
    ):
        assert expected in cause
    assert report.summary["blocks"] == 3
    assert report.summary["deviation"]["on_data"] == audit.run(Nucleus(0.9), good[:3]).summary["deviation"]["on_data"]


def test_an_unfinished_recording_says_so(tmp_path):
    path = record(tmp_path / "rec")
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "complete": False}))
    report = audit.run(Standard(), path)
    assert "unfinished" in report.errors[0]["cause"]
    assert report.summary["rows"] > 0


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Peak anonymous memory of an audit of 2,000 rows against one of 200: within 20 %."""
    peaks = []
    for n in (50, 500):
        path = record(tmp_path / f"rec{n}", n=n, vocab=1500, size=4)
        # VmHWM, the peak of this process alone; ru_maxrss would start from the parent's
        code = (
            "import sys; from spectheory import audit; from spectheory.verifiers import Nucleus;"
            f"r = audit.run(Nucleus(.9), {str(path)!r}, sweep=False);"
            "assert r.summary['rows'] == int(sys.argv[1]);"
            "print([x.split()[1] for x in open('/proc/self/status') if x.startswith('VmHWM')][0])"
        )
        done = subprocess.run([sys.executable, "-c", code, str(4 * n)], capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert peaks[1] < 1.2 * peaks[0]
