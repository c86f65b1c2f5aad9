"""Cases and headlines, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from meterveil.bench.cases import BEST_F1, Case, cases_of, headline, headline_by_seed, significant, strongest
from meterveil.bench.estimates import deviation, welch_p
from meterveil.bench.figures import gap_figures
from meterveil.core.battery import Battery

NAN = float("nan")


def case(raw, masked, metric="rmse", attacker="co", target="fridge"):
    """Build a case from (day,) and (seed, day)."""
    return Case(attacker, target, metric, np.array(raw, float), np.array(masked, float))


def one_day(raw, masked_by_seed, **names):
    return case([raw], [[value] for value in masked_by_seed], **names)


def test_delta_spread_and_p_are_those_of_a_t_test_by_hand():
    found = one_day(10.0, [11.0, 12.0, 13.0])
    assert (found.raw, found.masked, found.delta, found.spread) == (10.0, 12.0, 2.0, 1.0)
    t = 2.0 / (1.0 / np.sqrt(3))
    assert found.p == pytest.approx(1 - t / np.sqrt(t**2 + 2))  # Student's t with two degrees of freedom
    assert not found.is_harmful
    assert one_day(10.0, [11.9, 12.0, 12.1]).is_harmful


def test_a_score_that_a_defence_brings_to_zero_is_exactly_zero():
    raw = [0.44, 0.53]  # their mean plus the change leaves a rounding below zero
    assert case(raw, [[0.0, 0.0]] * 3, metric="f1").masked == 0.0


def test_a_change_that_helps_the_attacker_is_never_counted():
    helped = one_day(10.0, [8.0, 8.1, 7.9])
    assert helped.p < 0.05
    assert not helped.is_harmful
    assert one_day(0.5, [0.1, 0.12, 0.11], metric="f1").is_harmful
    assert not one_day(0.1, [0.5, 0.52, 0.51], metric="f1").is_harmful
    assert significant([helped, one_day(10.0, [20.0, 20.1, 19.9], target="kettle")], "rmse") == (1, 2)


def test_a_headline_is_a_ratio_of_means_and_not_a_mean_of_ratios():
    cases = [one_day(10.0, [30.0, 30.0]), one_day(90.0, [95.0, 95.0], target="kettle")]
    assert headline(cases, "rmse").value == pytest.approx(100 * (125 - 100) / 100)
    scores = [one_day(0.8, [0.2, 0.2], metric="f1"), one_day(0.2, [0.2, 0.2], metric="f1", target="kettle")]
    assert headline(scores, "f1").value == pytest.approx(60.0)


def test_every_seed_has_a_headline_of_its_own_and_their_mean_is_the_headline():
    cases = [
        one_day(10.0, [20.0, 30.0, 40.0]),
        one_day(30.0, [40.0, 50.0, 30.0], target="kettle"),
        one_day(30.0, [990.0, 0.0, 0.0], target="aggregate"),
    ]
    np.testing.assert_allclose(headline_by_seed(cases, "rmse"), [50.0, 100.0, 75.0])  # of 40 W, each
    assert headline(cases, "rmse").value == pytest.approx(75.0)
    assert deviation(headline_by_seed(cases, "rmse")) == pytest.approx(25.0)
    still = [case([NAN], [[NAN], [NAN]])]
    assert np.isnan(deviation(headline_by_seed(still, "rmse")))


def test_neither_the_load_nor_blind_nor_further_attackers_count_in_a_headline():
    cases = [
        one_day(10.0, [20.0, 20.0]),
        one_day(10.0, [990.0, 990.0], target="aggregate"),
        one_day(10.0, [990.0, 990.0], attacker="mean"),
        one_day(10.0, [990.0, 990.0], attacker="nilmformer"),
    ]
    assert headline(cases, "rmse").value == pytest.approx(100.0)
    assert significant(cases, "rmse") == (1, 1)
    assert headline(cases[-1:], "rmse").value == pytest.approx(9800.0)


def test_a_day_on_which_an_appliance_stood_still_is_left_out_on_both_sides():
    found = case([0.4, NAN, 0.8], [[0.2, NAN, 0.4], [0.2, NAN, 0.2]], metric="f1")
    assert found.n_days == 2
    assert found.raw == pytest.approx(0.6)
    np.testing.assert_allclose(found.masked_by_seed, [0.3, 0.2])
    still = case([NAN], [[NAN], [NAN]], metric="f1")
    assert np.isnan(still.p)
    assert significant([found, still], "f1")[1] == 1
    assert np.isnan(headline([still], "f1").value)


def test_an_attacker_acts_on_the_better_of_its_two_outputs():
    raw = {("kettle", "f1"): np.array([0.9]), ("kettle", "f1_head"): np.array([0.7])}
    masked = [{("kettle", "f1"): np.array([0.1]), ("kettle", "f1_head"): np.array([0.3])}] * 2
    [best] = [one for one in cases_of("fhmm", raw, masked) if one.metric == BEST_F1]
    assert (best.raw, best.masked) == (0.9, pytest.approx(0.3))


def test_leak_runs_from_the_score_of_routine_to_the_score_without_a_defence():
    found = one_day(0.8, [0.5, 0.5], metric=BEST_F1)
    assert found.leak(prior=0.2) == pytest.approx(0.5)
    assert one_day(40.0, [70.0, 70.0]).leak(prior=60.0) == pytest.approx(-0.5)


def test_a_defence_is_judged_by_the_attacker_that_reads_most():
    names = {"metric": BEST_F1}
    cases = [
        one_day(0.8, [0.3, 0.3], attacker="co", **names),
        one_day(0.6, [0.3, 0.3], attacker="co", target="kettle", **names),
        one_day(0.5, [0.4, 0.4], attacker="fhmm", **names),
        one_day(0.5, [0.4, 0.4], attacker="fhmm", target="kettle", **names),
    ]
    prior = {(target, BEST_F1): np.array([0.2]) for target in ("fridge", "kettle")}
    most = strongest(cases, prior, BEST_F1)
    assert (most.attacker, most.masked.value) == ("fhmm", pytest.approx(0.4))
    assert (most.raw, most.prior) == (pytest.approx(0.7), pytest.approx(0.2))
    assert most.leak.value == pytest.approx((0.4 - 0.2) / (0.7 - 0.2))


def test_seeds_of_the_strongest_are_read_by_the_same_attacker():
    names = {"metric": BEST_F1}
    cases = [
        one_day(0.6, [0.9, 0.1], attacker="co", **names),
        one_day(0.8, [0.5, 0.7], attacker="fhmm", **names),
        one_day(0.4, [0.5, 0.5], attacker="fhmm", target="kettle", **names),
        one_day(0.4, [0.1, 0.1], attacker="co", target="kettle", **names),
    ]
    prior = {(target, BEST_F1): np.array([0.2]) for target in ("fridge", "kettle")}
    most = strongest(cases, prior, BEST_F1)
    assert most.attacker == "fhmm"
    np.testing.assert_allclose(most.masked_by_seed, [0.5, 0.6])
    np.testing.assert_allclose(most.leak_by_seed, [0.75, 1.0])  # of the 0.4 between routine and no defence
    assert most.leak.value == pytest.approx(0.875)
    assert deviation(most.leak_by_seed) == pytest.approx(0.25 / np.sqrt(2))


def many_days(rmse_more, f1_less):
    """Build what was measured with a defence on six days that are very different for everyone."""
    days = np.array([1.0, 5.0, 2.0, 9.0, 3.0, 4.0])
    seeds = np.array([[-1.0], [0.0], [1.0]])
    cases = (
        case(np.full(6, 50.0), 50.0 + 10.0 * days + rmse_more + seeds),
        case(np.full(6, 0.8), 0.05 * days - f1_less + 0.01 * seeds, metric="f1"),
        case(np.full(6, 0.8), 0.05 * days - f1_less + 0.01 * seeds, metric=BEST_F1),
    )
    test = SimpleNamespace(dataset="redd", house=2, days=())
    trial = SimpleNamespace(test=test, days="held_out", aggregate="mains", training_label="10 days")
    setup = SimpleNamespace(battery=Battery())
    spec = SimpleNamespace(trial=trial, setup=setup, attackers={"fixed": ("co",)}, seeds=3)
    defence = SimpleNamespace(name="flat", seeds=lambda asked: asked)
    prior = {("fridge", BEST_F1): np.full(6, 0.3)}
    return SimpleNamespace(spec=spec, defence=defence, cases={"fixed": cases}, prior=prior)


def test_days_that_are_hard_for_both_leave_no_doubt_about_the_gap():
    one, other = many_days(rmse_more=15.0, f1_less=0.08), many_days(rmse_more=0.0, f1_less=0.0)
    alone = headline(one.cases["fixed"], "rmse")
    assert alone.high - alone.low > 40.0
    found = {(gap.attacker, gap.metric): gap for gap in gap_figures(one, other)}
    expected = {
        ("all", "rmse_increase_percent"): 30.0,  # 15 W of 50 W
        ("all", "f1_reduction_percent"): 10.0,  # 0.08 of 0.8
        ("strongest", "f1"): -0.08,
        ("strongest", "f1_leak"): -0.16,  # of the 0.5 between routine and no defence
    }
    assert list(found) == list(expected)
    for key, value in expected.items():
        assert (found[key].value, found[key].low, found[key].high) == pytest.approx((value, value, value))
    both_spreads = np.sqrt(2) * 2.0  # 1 W of 50 W each
    assert found["all", "rmse_increase_percent"].spread == pytest.approx(both_spreads)
    assert found["strongest", "f1_leak"].spread == pytest.approx(np.sqrt(2) * 0.02)


def test_the_gap_over_seeds_is_tested_as_welch_does():
    one, other = many_days(rmse_more=3.0, f1_less=0.0), many_days(rmse_more=0.0, f1_less=0.0)
    found = {(gap.attacker, gap.metric): gap for gap in gap_figures(one, other)}
    by_seed = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert found["all", "rmse_increase_percent"].p == pytest.approx(welch_p(*by_seed))
    assert found["strongest", "f1"].p == pytest.approx(1.0)
