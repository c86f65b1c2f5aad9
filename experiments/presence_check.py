"""Measure the rule for sleep and absence on synthetic homes: `python -m experiments.presence_check`.

Prints the figures of the section "Asleep or empty" of docs/audit.md. The plans of synthetic homes are known.
The default seeds were not used to choose the rule.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meterveil.audit.findings import NIGHT, audit
from meterveil.audit.model import Model, load_model, minutes_of
from meterveil.core.arrays import BoolArray
from meterveil.data.synthetic import FIRST_DAY, household
from meterveil.data.synthetic.routine import Routine, child, plan_days
from meterveil.data.synthetic.segments import join, minute_means


class Minutes(NamedTuple):
    """Plan of a home and the states that the rule assigned, (minute,) each."""

    up: BoolArray
    """Somebody was at home and awake."""
    night: BoolArray
    asleep: BoolArray
    empty: BoolArray
    sure: BoolArray
    """Part of a stretch that is called likely."""

    def shares(self) -> dict[str, float]:
        """Return the share of correct minutes for each question."""
        quiet, still = self.asleep | self.empty, ~self.up
        return {
            "called asleep, right": _share(still, self.asleep),
            "nights called asleep or empty": _share(quiet, still & self.night),
            "called empty, right": _share(still, self.empty),
            "called empty and likely, right": _share(still, self.empty & self.sure),
            "called empty but unsure, right": _share(still, self.empty & ~self.sure),
            "absences by day that are found": _share(quiet, still & ~self.night),
            "all minutes, right": float(np.mean(quiet == still)),
        }


def measure(seeds: Sequence[int], days: int, model: Model) -> Minutes:
    """Audit the synthetic homes of these seeds."""
    homes = [_measure(seed, days, model) for seed in seeds]
    return Minutes(*(np.concatenate(parts) for parts in zip(*homes, strict=True)))


def _measure(seed: int, days: int, model: Model) -> Minutes:
    home = household(np.random.default_rng(seed), days)
    hours = home.minutes.hour.to_numpy()
    findings = audit(home, model)
    sure = [(part.start, part.end) for part in findings.quiet if part.sure]
    return Minutes(
        up=_plan(seed, days, str(home.timezone), len(home.minutes)),
        night=(hours >= NIGHT[0]) | (hours < NIGHT[1]),
        asleep=findings.state_minutes("asleep") == 1,
        empty=findings.state_minutes("empty") == 1,
        sure=minutes_of(sure, len(home.minutes)),
    )


def _plan(seed: int, days: int, timezone: str, length: int) -> BoolArray:
    """Draw the plan of a synthetic home again, as `household` does."""
    number = int(np.random.default_rng(seed).integers(2**63))
    plan = plan_days(number, Routine.draw(child(number, 2)), FIRST_DAY, days, timezone)
    return np.asarray(minute_means(join(day.presence() for day in plan), length) > 0.5)


def _share(right: BoolArray, of: BoolArray) -> float:
    return float(np.mean(right[of])) if of.any() else float("nan")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how often sleep and absence are right in homes whose plans are known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=100, help="seed of the first home")
    parser.add_argument("--homes", type=int, default=12)
    parser.add_argument("--days", type=int, default=28, help="days of each home")
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.homes)
    for question, share in measure(seeds, options.days, load_model()).shares().items():
        print(f"{question}: {share:.0%}")


if __name__ == "__main__":
    main()
