from hypothesis import given, settings
from my_rule import MyRule

from spectheory import audit, exact, pmf, testing


@settings(database=None, deadline=None)
@given(testing.pairs())  # zeros, ties, one-hot and disjoint laws included
def test_emits_a_law_and_never_beats_the_optimal_line(pair):
    step = exact.step(MyRule(), *pair)
    assert abs(step.output.sum() - 1) < 1e-9
    assert 1 - step.acceptance_rate + step.deviation >= pmf.total_variation(*pair) - 1e-9


def test_drifts_by_at_most_five_hundredths_on_recorded_rows():
    assert audit.run(MyRule(), max_deviation=0.05).verdict == "holds"
