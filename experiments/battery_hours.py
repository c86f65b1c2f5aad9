"""Measure what a defence does hour by hour: `python -m experiments.battery_hours RUNS flat ... --on redd`.

Makes results/study_battery_hours.csv and the pictures docs/img/battery-hours-redd.png and battery-hours-ukdale.png of
docs/learned-defence.md: state of charge, remaining budget and RMS power by the hour, and for a trained
manager the share of its choices that the battery delivers. No attacker is involved. Defences are named as
for `meterveil evaluate`; `--picture` only draws what is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from experiments import study
from experiments.decisions import play_decisions
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import protocol
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders.defence import Defence, common_setup, find_defences
from meterveil.defenders.trained_policies import ManagerPolicy
from meterveil.errors import InputError
from meterveil.plots import look
from meterveil.plots.html import save

PLAYS = 5
"""Number of times that each day is simulated, by one policy or by one policy of each training."""
TEST_DICE = 0x7E57
"""Same random numbers as those of an evaluation."""
DAY_MINUTES = 1440
SPENT_KWH = 0.1
"""A budget with less than this left counts as spent: no signature fits into it."""
PANELS = {"soc": "Battery charge", "budget_left": "Budget left", "rms_w": "RMS power of the battery"}
"""Hourly metric -> heading of its panel."""


class Hours(NamedTuple):
    """Mean behaviour of a battery over days: three series by the hour, (24,) each, and three figures."""

    soc: FloatArray
    budget_left: FloatArray  # share of the day's throughput
    rms_w: FloatArray
    spent_hour: float  # median hour at which the budget is used up; 24 where it is not
    net_kwh: float  # charged minus discharged
    soc_end: float


class Delivery(NamedTuple):
    """Share of a manager's choices that the battery delivered."""

    charging_choices: float  # of all choices other than idle
    charged: float  # of the energy of the chosen charging signatures
    discharged: float  # of the energy of the chosen discharging signatures
    empty_choices: float  # of all choices other than idle: no energy moved


def hours_of(defence: Defence, setup: Setup, scenario: Scenario, seed: int = 0) -> Hours:
    """Simulate every day from half charge (D6) and average each hour."""
    rngs = [np.random.default_rng([seed, number, TEST_DICE]) for number in range(PLAYS * scenario.batch)]
    traces = []
    for number in range(PLAYS):
        policy = defence.policies[number % len(defence.policies)]
        traces.append(rollout(policy, setup.battery, setup.library, scenario, rngs[number::PLAYS]))
    power_w = _whole_days([trace.power_w for trace in traces], scenario)
    soc = _whole_days([trace.soc for trace in traces], scenario)
    moved_kwh = np.cumsum(np.abs(power_w), axis=1) * KWH_PER_W_MINUTE
    budget_kwh = float(np.max(setup.battery.budget_kwh))
    spent = moved_kwh >= budget_kwh - SPENT_KWH
    spent_at = np.where(spent.any(axis=1), spent.argmax(axis=1), DAY_MINUTES)
    return Hours(
        soc=_hourly(soc).mean(axis=0),
        budget_left=1.0 - _hourly(moved_kwh).mean(axis=0) / budget_kwh,
        rms_w=np.sqrt(_hourly(power_w**2).mean(axis=0)),
        spent_hour=float(np.median(spent_at)) / 60.0,
        net_kwh=float(power_w.sum(axis=1).mean()) * KWH_PER_W_MINUTE,
        soc_end=float(soc[:, -1].mean()),
    )


def delivery_of(defence: Defence, setup: Setup, scenario: Scenario, seed: int = 0) -> Delivery | None:
    """Compare the choices of managers with what was delivered; None for other defences."""
    managers = [policy for policy in defence.policies if isinstance(policy, ManagerPolicy)]
    if not managers:
        return None
    params = EnvParams(setup.battery, setup.library)
    signature, sign, _ = setup.library.by_action
    wanted_kwh = setup.library.watts[signature].sum(axis=1) * KWH_PER_W_MINUTE
    parts = [
        play_decisions(policy, params, scenario, _no_reward, np.random.default_rng([seed, number]))
        for number, policy in enumerate(managers)
    ]
    action = np.concatenate([part.action for part in parts])
    moved_kwh = np.concatenate([part.moved_kwh for part in parts])
    action, moved_kwh = action[action > 0], moved_kwh[action > 0]
    charges = sign[action] > 0
    charged, discharged = (
        float(moved_kwh[side].sum() / wanted_kwh[action][side].sum()) for side in (charges, ~charges)
    )
    return Delivery(float(charges.mean()), charged, discharged, float((moved_kwh == 0.0).mean()))


def figures_of(dataset: str, name: str, hours: Hours, delivery: Delivery | None, days: int) -> list[dict[str, Any]]:
    """List the figures of one defence: single ones, and the hourly ones with the hour as `x`."""
    single = {metric: getattr(hours, metric) for metric in ("spent_hour", "net_kwh", "soc_end")}
    single |= delivery._asdict() if delivery else {}
    shared = {"dataset": dataset, "row": name, "seeds": 1, "n_days": days}
    figures = [{**shared, "metric": metric, "value": value} for metric, value in single.items()]
    return figures + [
        {**shared, "metric": metric, "x": hour, "value": value}
        for metric in PANELS
        for hour, value in enumerate(getattr(hours, metric))
    ]


def draw(table: pd.DataFrame, dataset: str, path: Path) -> None:
    """Draw the hourly figures of all defences of a data set."""
    hourly = table[(table["dataset"] == dataset) & table["metric"].isin(list(PANELS))]
    if hourly.empty:
        raise InputError(f"no hourly figures of {dataset} are recorded; run the study without --picture")
    panels = look.stacked(look.bold(PANELS.values()), 0.09, shared_xaxes=True)
    colours = look.colours_of(sorted(hourly["row"].unique()))
    for key, part in hourly.sort_values("x").groupby(["row", "metric"], sort=False):
        name, metric = map(str, key)
        row, values = list(PANELS).index(metric) + 1, part["value"].tolist()
        line = go.Scatter(x=list(range(25)), y=[*values, values[-1]], name=name, legendgroup=name, mode="lines")
        line.update(showlegend=row == 1, line={"color": colours[name], "width": 2, "shape": "hv"})
        panels.add_trace(line, row, 1)
    for row in (1, 2):
        panels.update_yaxes(tickformat=".0%", range=[0, 1], row=row)
    panels.update_yaxes(**look.WATTS, rangemode="tozero", row=3)
    ticks = list(range(0, 25, 3))
    panels.update_xaxes(range=[0, 24], tickvals=ticks, ticktext=[f"{hour:02d}:00" for hour in ticks])
    title = f"{look.readable(dataset)}, mean of {hourly['n_days'].max()} days"
    figure = look.figure_of(panels, title, 760).update_layout(margin_t=120, legend_y=1.06)
    save(figure, path, width=1000)


def _no_reward(scenario: Scenario, before: EnvState, action: object, after: EnvState) -> FloatArray:
    return np.zeros(len(after.minute))


def _whole_days(parts: Sequence[FloatArray], scenario: Scenario) -> FloatArray:
    """Keep days of 24 hours; days on which the clocks change have other hours."""
    whole = scenario.minutes == DAY_MINUTES
    return np.concatenate([part[whole, :DAY_MINUTES] for part in parts])


def _hourly(minutes: FloatArray) -> FloatArray:
    return np.asarray(minutes.reshape(len(minutes), 24, 60).mean(axis=2))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the given defences and draw all recorded ones."""
    parser = study.options(__doc__ or "")
    parser.add_argument("defences", nargs="*", help="names, runs or folders of runs, as for meterveil evaluate")
    parser.add_argument("--on", choices=["redd", "ukdale"], required=True)
    options = parser.parse_args(arguments)
    if not options.picture:
        chosen = protocol(options.on)
        household = load(data_folder(options.data) / chosen.dataset, chosen.house, appliances=[])
        days = chosen.held_out(household, min_days=1)
        defences = find_defences(options.defences)
        setup = common_setup(defences, options.library)
        scenario = episodes(household, days, setup.tariff)
        for defence in defences:
            hours, delivery = hours_of(defence, setup, scenario), delivery_of(defence, setup, scenario)
            figures = figures_of(options.on, defence.name, hours, delivery, len(days))
            settings = {"house": chosen.house, **defence.settings, "plays": PLAYS}
            key = f"battery_hours_{options.on}_{defence.name.replace(':', '_')}"
            study.record(options.results, "battery_hours", key, figures, settings)
    draw(study.read(options.results, "battery_hours"), options.on, options.pictures / f"battery-hours-{options.on}.png")


if __name__ == "__main__":
    main()
