"""The paper's claims as data: which figures each is about, and why it came out otherwise where it did."""

from __future__ import annotations

from dataclasses import dataclass

from meterveil.bench.report.columns import Verdict
from meterveil.bench.report.names import CHANCE

RMSE, F1 = "rmse_increase_percent", "f1_reduction_percent"
_WATTS = "the reward pays watts, not secrets, and watts are what RMSE counts; docs/learned-defence.md"
_BARE = (
    "the reward pays watts, not secrets: the battery is full early, its budget is gone when the evening "
    "comes, and the evening's uses are bare; a ration mends part of it, until attackers adapt; "
    "docs/learned-defence.md"
)
_BOTH_MORE = "both rows disturb more here, so that the gap in points is larger too; docs/ablations.md"
_OTHERS = ("random", "rule_based", "ddql_flat", "ddql_mi")


@dataclass(frozen=True)
class Claim:
    """Say which figure a claim is: one of a row, or how much more one row has than the best of others."""

    table: str
    column: str
    words: str
    label: str = "ours"
    over: tuple[str, ...] = ()
    """Labels of which the highest is taken away; none where the figure itself is the claim."""
    worse: str = ""
    """Why ours may be worse or otherwise, in plain words, and the page that explains it; where neither this
    nor `better` is given, the reason of the column counts, which stands in `reasons.py`."""
    better: str = ""

    def reason(self, verdict: Verdict) -> str:
        """Return why it came out so; nothing for what is as in the paper or not known."""
        if verdict == "better":
            return self.better
        return self.worse if verdict in ("worse", "differs") else ""


HEADLINES: tuple[Claim, ...] = (
    Claim("overall_transfer", RMSE, "attackers' RMSE rises, %", better=_WATTS),
    Claim("overall_transfer", F1, "attackers' F1 falls, %", worse=_BARE),
    Claim("overall_transfer", "rmse_significant", "cases with significantly more RMSE", better=_WATTS),
    Claim("overall_transfer", "f1_significant", "cases with significantly less F1", worse=_BARE),
)
"""Of both data sets."""

COMPARED: tuple[Claim, ...] = (
    Claim(
        "baseline_comparison",
        RMSE,
        "lead over the next best of the paper's defences, points of RMSE",
        over=_OTHERS,
        better=_WATTS,
    ),
    Claim(
        "baseline_comparison",
        F1,
        "lead over the next best of the paper's defences, points of F1",
        over=_OTHERS,
        worse="a battery that keeps the meter level hides more uses than replays, which disturb it; "
        "docs/learned-defence.md",
    ),
    Claim("baseline_comparison", "total_cost", "cost of a day with the battery"),
    Claim("baseline_comparison", "soc_neutral_cost", "the same, with the charge of the morning bought back"),
    Claim("baseline_comparison", "training_hours", "hours of training"),
)

OVER_CHANCE: tuple[Claim, ...] = (
    Claim("baseline_comparison", RMSE, "lead over chance at equal kWh, points of RMSE", over=(CHANCE,)),
    Claim("baseline_comparison", F1, "lead over chance at equal kWh, points of F1", over=(CHANCE,)),
)
"""Shown until the gap itself was tested."""

ABLATIONS: tuple[Claim, ...] = (
    Claim(
        "probe_ablation",
        RMSE,
        "probe: transformer over CNN, points of RMSE",
        "transformer",
        ("cnn",),
        worse="a formula without a parameter teaches as well as the best network; docs/ablations.md",
        better=_BOTH_MORE,
    ),
    Claim(
        "signature_size_ablation",
        RMSE,
        "ten signatures over three, points of RMSE",
        "10",
        ("3",),
        worse="from seven signatures on, more of them add nothing here; docs/ablations.md",
        better=_BOTH_MORE,
    ),
    Claim(
        "battery_sensitivity",
        RMSE,
        "8 kWh of capacity over 2, points of RMSE",
        "main",
        ("capacity 2 kWh",),
        worse="a small battery is full sooner and has to discharge before it charges again, so that its "
        "budget lasts longer; docs/ablations.md",
    ),
    Claim(
        "battery_sensitivity",
        RMSE,
        "8 kWh a day over 2, points of RMSE",
        "main",
        ("throughput 2 kWh",),
        better=_BOTH_MORE,
    ),
)

OTHER_DAYS: dict[str, Claim] = {
    dataset: Claim(
        table,
        F1,
        "F1 falls on {} other days and houses, without retraining, %",
        worse="F1 falls less on the paper's own day as well, for the same reason; docs/learned-defence.md",
    )
    for dataset, table in (
        ("ukdale", "heldout_day_generalization"),
        ("redd", "heldout_day_generalization_redd"),
    )
}
"""Data set -> the mean over its days and houses; the words take how many these are."""
