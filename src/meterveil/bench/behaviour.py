"""What a defence does with its day, hour by hour: `python -m meterveil.bench.behaviour`.

How full the battery is, how much of the day's budget is left, how much the meter is disturbed; and, for a
trained manager, how much of what it asks for is done. Writes the cards and the picture that
docs/learned-defence.md speaks of. It looks at batteries only: no attacker reads anything here.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from meterveil.bench.cards import Card, write
from meterveil.bench.evaluation.play import dice
from meterveil.core.arrays import KWH_PER_W_MINUTE, FloatArray
from meterveil.core.env import EnvParams, EnvState
from meterveil.core.rollout import rollout
from meterveil.core.scenario import Scenario
from meterveil.data.files import data_folder
from meterveil.data.load import load
from meterveil.data.protocols import Protocol, protocol
from meterveil.data.simulation import Setup, episodes
from meterveil.defenders.defence import Defence, common_setup, find_defences
from meterveil.defenders.manager.manager_policy import ManagerPolicy, play_decisions
from meterveil.endings import ending_in_one_line
from meterveil.plots.behaviour import Hours, hours_figure
from meterveil.plots.saving import save

TABLE = "behaviour"
PLAYS = 5
"""How often each day is played, by one policy or by one of each training."""
DAY_MINUTES = 1440
_SPENT_KWH = 0.1
"""Less of the budget than this is left where it counts as spent: no signature fits into it."""


class Delivery(NamedTuple):
    """What became of a manager's choices, shares of one."""

    charging_choices: float  # of all choices but idling
    charged: float  # of the energy that charging replays would move if nothing stood in their way
    discharged: float  # of the energy that discharging replays would move
    empty_choices: float  # of all choices but idling: nothing moved


def hours_of(one: Defence, setup: Setup, scenario: Scenario, seed: int = 0) -> Hours:
    """Play every day from half charge (D6) and average what the battery does in each hour."""
    generators = dice(seed, PLAYS * scenario.batch)
    traces = []
    for number in range(PLAYS):
        policy = one.policies[number % len(one.policies)]
        mine = generators[number::PLAYS]
        traces.append(rollout(policy, setup.battery, setup.library, scenario, mine))
    power_w = _whole_days([trace.power_w for trace in traces], scenario)
    soc = _whole_days([trace.soc for trace in traces], scenario)
    moved_kwh = np.cumsum(np.abs(power_w), axis=1) * KWH_PER_W_MINUTE
    budget_kwh = float(np.max(setup.battery.budget_kwh))
    spent = moved_kwh >= budget_kwh - _SPENT_KWH
    spent_at = np.where(spent.any(axis=1), spent.argmax(axis=1), DAY_MINUTES)
    return Hours(
        soc=_hourly(soc).mean(axis=0),
        budget_left=1.0 - _hourly(moved_kwh).mean(axis=0) / budget_kwh,
        rms_w=np.sqrt(_hourly(power_w**2).mean(axis=0)),
        spent_hour=float(np.median(spent_at)) / 60.0,
        net_kwh=float(power_w.sum(axis=1).mean()) * KWH_PER_W_MINUTE,
        soc_end=float(soc[:, -1].mean()),
    )


def delivery_of(one: Defence, setup: Setup, scenario: Scenario, seed: int = 0) -> Delivery | None:
    """Compare what managers choose with what is done; None for a defence that chooses no signatures."""
    managers = [policy for policy in one.policies if isinstance(policy, ManagerPolicy)]
    if not managers:
        return None
    params = EnvParams(setup.battery, setup.library)
    signature, sign, _ = setup.library.by_action
    asked_kwh = setup.library.watts[signature].sum(axis=1) * KWH_PER_W_MINUTE
    parts = [
        play_decisions(policy, params, scenario, _nothing, np.random.default_rng([seed, number]))
        for number, policy in enumerate(managers)
    ]
    action, moved_kwh = (
        np.concatenate([getattr(p, field) for p in parts]) for field in ("action", "moved_kwh")
    )
    chosen = action > 0
    action, moved_kwh = action[chosen], moved_kwh[chosen]
    charges = sign[action] > 0
    charged, discharged = (
        float(moved_kwh[side].sum() / asked_kwh[action][side].sum()) for side in (charges, ~charges)
    )
    return Delivery(float(charges.mean()), charged, discharged, float((moved_kwh == 0.0).mean()))


def cards_of(
    one: Defence, chosen: Protocol, hours: Hours, delivery: Delivery | None, days: int
) -> list[Card]:
    """Write the sums down; the picture has the hours."""
    figures = {name: getattr(hours, name) for name in ("spent_hour", "net_kwh", "soc_end")}
    figures |= delivery._asdict() if delivery else {}
    settings = {"house": chosen.house, **one.settings, "plays": PLAYS}
    return [
        Card(TABLE, one.name, column, chosen.dataset, measured, n_days=days, settings=settings)
        for column, measured in figures.items()
    ]


def _nothing(scenario: Scenario, before: EnvState, action: object, after: EnvState) -> FloatArray:
    return np.zeros(len(after.minute))


def _whole_days(parts: Sequence[FloatArray], scenario: Scenario) -> FloatArray:
    """Keep days of 24 hours: where the clocks change, hours have no common number."""
    whole = scenario.minutes == DAY_MINUTES
    return np.concatenate([part[whole, :DAY_MINUTES] for part in parts])


def _hourly(minutes: FloatArray) -> FloatArray:
    hours: FloatArray = minutes.reshape(len(minutes), 24, 60).mean(axis=2)
    return hours


@ending_in_one_line()
def main() -> None:
    """Measure the defences that are named, and write cards and a picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "defences", nargs="+", help="names, runs or folders of runs, as for meterveil evaluate"
    )
    parser.add_argument("--on", required=True, help="redd or ukdale")
    parser.add_argument("--data", type=Path, help="folder of data sets; default: $METERVEIL_DATA")
    parser.add_argument("--library", type=Path, help="JSON file of signatures; default: those of the runs")
    parser.add_argument("--results", type=Path, default=Path("out/results"))
    parser.add_argument("--pictures", type=Path, default=Path("out"))
    asked = parser.parse_args()
    data = data_folder(asked.data)
    chosen = protocol(asked.on)
    household = load(data / chosen.dataset, chosen.house, appliances=[])
    days = chosen.held_out(household, min_days=1)
    found = find_defences(asked.defences)
    setup = common_setup(found, asked.library)
    scenario = episodes(household, days, setup.tariff)
    hours: dict[str, Hours] = {}
    for one in found:
        hours[one.name] = hours_of(one, setup, scenario)
        delivery = delivery_of(one, setup, scenario)
        write(asked.results, cards_of(one, chosen, hours[one.name], delivery, len(days)))
    title = f"{household.name}, mean of {len(days)} days"
    save(hours_figure(hours, title), asked.pictures / f"behaviour-{asked.on}.png", width=1000)


if __name__ == "__main__":
    main()
