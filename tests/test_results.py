"""Results survive JSON unchanged, infinities included, and refuse to be NaN."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from spectheory import AuditReport, CheckResult, Interval
from spectheory.results import encode_float


@pytest.mark.parametrize(
    "interval",
    [
        Interval.exact(0.25, "N1"),
        Interval.upper_bound(math.inf, "E6"),
        Interval(0.1, 0.2, 0.3, "statistical", 1e-3, "Hoeffding"),
        Interval(0.1, None, 0.3, "certified", None, "Q7"),
    ],
)
def test_intervals_round_trip(interval):
    assert Interval.from_json(json.loads(json.dumps(interval.to_json(), allow_nan=False))) == interval


def test_intervals_refuse_nonsense():
    with pytest.raises(ValueError, match="empty"):
        Interval(0.3, None, 0.1, "certified")
    with pytest.raises(ValueError, match="empty"):
        Interval(math.nan, None, 1.0, "certified")
    with pytest.raises(ValueError, match="alpha"):
        Interval(0.0, None, 1.0, "statistical")
    with pytest.raises(ValueError, match="NaN"):
        encode_float(math.nan)


def test_intervals_print_their_kind():
    assert str(Interval.exact(0.25)) == "0.25"
    assert str(Interval(0.1, 0.2, 0.3, "statistical", 0.05, "x")) == "0.2 in [0.1, 0.3] (0.95 confidence)"
    assert str(Interval.upper_bound(0.5, "Q3")) == "[0, 0.5] (certified, Q3)"
    assert 0.2 in Interval(0.1, None, 0.3, "certified")


def test_reports_round_trip():
    report = AuditReport(
        verifier={"name": "nsd", "settings": {"top_p": 0.9}},
        source={"rows": 3},
        claim="",
        verdict="",
        summary={"deviation": Interval.exact(0.1), "quantiles": np.array([0.1, math.inf])},
        worst_rows=[{"row": 1, "deviation": Interval.exact(0.3)}],
        rows={"tv": np.zeros(3)},
    )
    back = AuditReport.from_json(json.loads(report.dumps()))
    assert back.summary["deviation"] == Interval.exact(0.1)
    assert back.worst_rows[0]["deviation"] == Interval.exact(0.3)
    assert back.to_json() == report.to_json()
    assert back.spectheory_version
    with pytest.raises(ValueError, match="schema"):
        AuditReport.from_json({**report.to_json(), "schema_version": 99})


def test_reports_print_at_a_glance():
    summary = {"deviation": {"on_data": Interval.exact(0.25)}, "rows": 3}
    report = AuditReport({"title": "a<b"}, {"name": "sample"}, "", "no claim", summary, errors=[{}])
    assert repr(report).splitlines() == [
        "Audit of a<b on sample: no claim",
        "  deviation              0.25",
        "  1 bad rows set aside",
    ]
    assert "a&lt;b" in report._repr_html_()
    assert "<td>0.25</td>" in report._repr_html_()


def test_check_results_round_trip():
    result = CheckResult("N1", True, 10, -math.inf, "", 3)
    assert CheckResult.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False))) == result
