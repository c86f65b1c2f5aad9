from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from meterveil.bench.estimates import is_harmful
from meterveil.bench.metrics import delta, headline_percent
from meterveil.bench.reported import ATTACKERS, TABLES, cases, table
from meterveil.data.protocols import PROTOCOLS, REDD_EVALUATION_DAYS, UKDALE_EVALUATION_DAYS

DATASETS = {"ukdale": "UK-DALE", "redd": "REDD"}
METRICS = ["rmse", "mae", "sae", "f1"]
each_dataset = pytest.mark.parametrize("dataset", DATASETS)
each_metric = pytest.mark.parametrize("metric", METRICS)

ROUNDING = 0.005
"""The tables print two decimals."""


def headline(dataset, column):
    return table("overall_transfer").set_index("dataset").loc[DATASETS[dataset], column]


def appliance_cases(dataset, metric):
    printed = cases(dataset)
    return printed[(printed.metric == metric) & (printed.target != "aggregate")]


def recomputed_percent(dataset, metric, masked="delta"):
    chosen = appliance_cases(dataset, metric)
    after = chosen.raw + chosen.delta if masked == "delta" else chosen.masked
    return headline_percent(metric, chosen.raw, after)


def test_every_table_is_a_file_and_every_file_a_table():
    present = {file.name for file in files("meterveil.bench.reported").iterdir() if file.name.endswith(".csv")}
    assert present == {f"{name}.csv" for name in TABLES}


@each_dataset
def test_each_attacker_has_a_score_for_each_target_and_the_aggregate(dataset):
    printed = cases(dataset)
    targets = ["aggregate", *PROTOCOLS[dataset].targets]
    expected = [
        (attacker, target, metric)
        for attacker in ATTACKERS.values()
        for target in targets
        for metric in METRICS
        if (target, metric) != ("aggregate", "f1")
    ]
    assert list(zip(printed.attacker, printed.target, printed.metric, strict=True)) == expected
    assert len(appliance_cases(dataset, "rmse")) == headline(dataset, "cases")
    assert printed.drop(columns="p_value").notna().all(axis=None)


@each_dataset
def test_delta_is_masked_minus_raw_up_to_rounding(dataset):
    printed = cases(dataset)
    np.testing.assert_allclose(delta(printed.raw, printed.masked), printed.delta, rtol=0, atol=3.1 * ROUNDING)
    assert np.array_equal(printed.masked_std, printed.delta_std)


@pytest.mark.parametrize(
    ("dataset", "metric"), [("ukdale", "rmse"), ("redd", "rmse"), ("ukdale", "sae"), ("redd", "mae"), ("redd", "f1")]
)
def test_headlines_that_are_ratios_of_means_to_the_last_digit(dataset, metric):
    name = f"{metric}_{'reduction' if metric == 'f1' else 'increase'}_percent"
    assert round(recomputed_percent(dataset, metric), 2) == headline(dataset, name)


@pytest.mark.parametrize(
    ("dataset", "metric", "recomputed"), [("ukdale", "mae", 118.91), ("redd", "sae", 196.34), ("ukdale", "f1", 79.42)]
)
def test_headlines_that_differ_by_what_rounded_cells_allow(dataset, metric, recomputed):
    name = f"{metric}_{'reduction' if metric == 'f1' else 'increase'}_percent"
    assert round(recomputed_percent(dataset, metric), 2) == recomputed
    mean_raw = appliance_cases(dataset, metric).raw.mean()
    slack = 100 * ROUNDING / mean_raw * (1 + recomputed / 100)
    assert 0 < abs(recomputed - headline(dataset, name)) < slack


@each_dataset
@each_metric
def test_significant_cases_are_those_that_the_paper_counts(dataset, metric):
    chosen = appliance_cases(dataset, metric)
    certain = chosen.p_value.isna()  # no p is printed where all seeds agree
    assert (chosen.masked_std[certain] == 0).all()
    harmful = is_harmful(metric, chosen.delta, chosen.p_value.fillna(0.0))
    assert harmful.sum() == headline(dataset, f"{metric}_significant")


@pytest.mark.parametrize(("dataset", "ddof"), [("ukdale", 0), ("redd", 1)])
def test_p_values_are_t_tests_over_five_seeds_by_the_deviation_that_each_table_prints(dataset, ddof):
    printed = cases(dataset)
    printed = printed[printed.p_value.notna() & (printed.delta_std >= 0.1)]
    shares = []
    for divisor in (ddof, 1 - ddof):
        error = printed.delta_std / np.sqrt(5 - 1 + divisor)
        p = 2 * stats.t.sf(np.abs(printed.delta) / error, df=4)
        shares.append(np.mean(np.abs(p - printed.p_value) <= 0.012))
    assert shares[0] > 0.96
    assert shares[0] > shares[1]


def test_the_main_setting_is_the_same_row_in_every_table():
    columns = ["rmse_increase_percent", "f1_reduction_percent", "rmse_significant", "f1_significant", "cases"]
    main = table("overall_transfer").set_index("dataset").loc["UK-DALE", columns]
    others = [
        table("baseline_comparison").set_index("method").loc["Ours", columns],
        table("probe_ablation").set_index("probe").loc["Seq2Seq", columns],
        table("signature_size_ablation").set_index("signatures").loc[10, columns],
    ]
    for row in others:
        np.testing.assert_array_equal(row.astype(float), main.astype(float))
    battery = table("battery_sensitivity").set_index("factor").loc["Main setting", columns]
    np.testing.assert_allclose(battery.astype(float), main.astype(float), atol=0.051)


def test_the_battery_table_has_another_change_of_the_aggregate_than_the_attacker_table():
    printed = cases("ukdale")
    aggregate = printed[(printed.target == "aggregate") & (printed.metric == "rmse")]
    battery = table("battery_sensitivity").set_index("factor").loc["Main setting"]
    assert aggregate.delta.mean() == pytest.approx(383.47, abs=0.01)
    assert battery.aggregate_delta_rmse_w == 413.9


def test_costs_add_up():
    costs = table("baseline_comparison")
    np.testing.assert_allclose(costs.energy_cost + costs.degradation_cost, costs.total_cost, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "days", "exceptions"),
    [
        ("heldout_day_generalization", UKDALE_EVALUATION_DAYS, []),
        ("heldout_day_generalization_redd", REDD_EVALUATION_DAYS, [(0, "rmse")]),
    ],
)
def test_held_out_rows_are_the_evaluation_days_and_their_ratios_hold_but_one(name, days, exceptions):
    printed = table(name)
    rows = [(str(row.day), row.house, row.label, row.active_appliances) for row in days]
    assert list(zip(printed.day, printed.house, printed.label, printed.active_appliances, strict=True)) == rows
    consistent = pd.DataFrame(
        {
            "rmse": follows(printed.rmse_raw_w, printed.rmse_masked_w, printed.rmse_increase_percent, 0.005),
            "f1": follows(printed.f1_raw, printed.f1_masked, -printed.f1_reduction_percent, 0.0005),
        }
    )
    contradictory = [(row, metric) for metric in consistent for row in consistent.index[~consistent[metric]]]
    assert contradictory == exceptions


def follows(raw, masked, printed_percent, rounding):
    """Say for each row whether a printed change is that of the printed values, up to their rounding."""
    slack = 100 * rounding / raw * (1 + masked / raw) + 0.05
    return np.abs(100 * (masked / raw - 1) - printed_percent) <= slack
