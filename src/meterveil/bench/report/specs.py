"""The tables of the report, in the order in which they are read."""

from __future__ import annotations

from meterveil.bench.report.compare import TableSpec

_CHANGES = ("rmse_increase_percent", "f1_reduction_percent", "rmse_significant", "f1_significant")
_COSTS = ("energy_cost", "degradation_cost", "total_cost", "soc_neutral_cost", "throughput_kwh", "soc_end")
_OTHER_DAYS = (
    "rmse_raw_w",
    "rmse_masked_w",
    "rmse_increase_percent",
    "f1_raw",
    "f1_masked",
    "f1_reduction_percent",
)

SPECS: tuple[TableSpec, ...] = (
    TableSpec(
        "overall_transfer",
        "Overall transfer",
        "What the learned defence does to six attackers that it never saw, on the paper's test day of each "
        "data set.",
        (
            "rmse_increase_percent",
            "mae_increase_percent",
            "sae_increase_percent",
            "f1_reduction_percent",
            "rmse_significant",
            "mae_significant",
            "sae_significant",
            "f1_significant",
        ),
    ),
    TableSpec(
        "baseline_comparison",
        "Comparison with other defences",
        "The same day and the same fixed attackers for every defence. Chance at equal kWh plays signatures "
        "by dice and moves what ours moves (D8); the neutral cost includes what it takes to begin the next "
        "day with the same charge (D7).",
        (*_CHANGES, *_COSTS, "training_hours"),
    ),
    TableSpec(
        "probe_ablation",
        "Which probe",
        "The network that stands in for unknown attackers during training. Identity, which only "
        "measures how far the meter was moved, is beyond the paper.",
        _CHANGES,
        ("ukdale",),
    ),
    TableSpec(
        "signature_size_ablation",
        "How many signatures",
        "The policy replays fewer and fewer of the ten appliance signatures.",
        _CHANGES,
        ("ukdale",),
    ),
    TableSpec(
        "battery_sensitivity",
        "Which battery",
        "Capacity, power and daily throughput, one changed at a time. Rationed are the same trainings, with "
        "the day's budget given out as the day passes.",
        (*_CHANGES, "aggregate_delta_rmse_w"),
        ("ukdale",),
    ),
    TableSpec(
        "lambda_sweep",
        "Privacy against cost",
        "Lambda weighs privacy (1) against cost (0) in the reward. The paper has a picture and no figures.",
        (*_CHANGES[:2], *_COSTS),
        ("ukdale",),
    ),
    TableSpec(
        "heldout_day_generalization",
        "Other days and houses of UK-DALE",
        "Without retraining: the policy of house 1 on other days and in other houses.",
        _OTHER_DAYS,
        ("ukdale",),
    ),
    TableSpec(
        "heldout_day_generalization_redd",
        "Other days and houses of REDD",
        "Without retraining: the policy of house 2 on other days and in other houses.",
        _OTHER_DAYS,
        ("redd",),
    ),
    TableSpec(
        "many_days",
        "Many days",
        "One day is noise (D16): every well-covered held-out day of the same house, SoC carried over "
        "midnight. Brackets are 95 % intervals over days.",
        (*_CHANGES[:2], *_COSTS),
    ),
    TableSpec(
        "remedies",
        "Remedies for a budget that is spent before the evening",
        "Ours, a manager that looks further ahead (patient), and the trainings of ours with the day's budget "
        "given out as the day passes (rationed).",
        (*_CHANGES[:2], *_COSTS),
    ),
)

GAP = TableSpec(
    "gap_to_chance",
    "Ours against chance at equal kWh",
    "Ours minus chance that moves as much, on the same days: ± over seeds, 95 % interval over days, and the "
    "probability p of such a gap over seeds if there were none. Ours hides more where RMSE Inc. and F1 Red. "
    "are above 0 and the two others below.",
    (),
)
"""Whose figures are differences: `chance.py` shows them."""

REPRODUCED: tuple[TableSpec, ...] = (*SPECS, GAP)
"""Every table that `meterveil reproduce` measures."""
