"""Hold the rule for sleep and absence to synthetic homes whose plans are known.

`python -m meterveil.audit.presence_check` prints the figures of docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import typer

from meterveil.audit.audit import Audit, audit
from meterveil.audit.model import Model, load_model
from meterveil.audit.presence import NIGHT
from meterveil.audit.uses import BoolArray, minutes_of
from meterveil.data.synthetic.habits import Routine, child, plan_days
from meterveil.data.synthetic.house import FIRST_DAY, household
from meterveil.data.synthetic.segments import join, minute_means

SEEDS = tuple(range(100, 112))
"""Homes that did not choose the rule."""
DAYS = 28


class Judged(NamedTuple):
    """Hold minutes of homes: what was said of them, and the truth."""

    up: BoolArray
    """Somebody was in and awake."""
    night: BoolArray
    asleep: BoolArray
    empty: BoolArray
    sure: BoolArray
    """Part of a stretch that is called likely."""

    def shares(self) -> dict[str, float]:
        """Return the share of minutes that is right, under each question."""
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


def judge(seeds: Sequence[int], days: int, model: Model) -> Judged:
    """Audit the synthetic homes of these seeds."""
    homes = [_judge(seed, days, model) for seed in seeds]
    return Judged(*(np.concatenate(parts) for parts in zip(*homes, strict=True)))


def _judge(seed: int, days: int, model: Model) -> Judged:
    home = household(np.random.default_rng(seed), days)
    hours = home.minutes.hour.to_numpy()
    found = audit(home, model)
    return Judged(
        up=_plan(seed, days, str(home.timezone), len(home.minutes)),
        night=(hours >= NIGHT[0]) | (hours < NIGHT[1]),
        asleep=found.state_minutes("asleep") == 1,
        empty=found.state_minutes("empty") == 1,
        sure=_sure(found),
    )


def _plan(seed: int, days: int, timezone: str, length: int) -> BoolArray:
    """Draw the plan of a synthetic home again, as its household does."""
    number = int(np.random.default_rng(seed).integers(2**63))
    plan = plan_days(number, Routine.draw(child(number, 2)), FIRST_DAY, days, timezone)
    return np.asarray(minute_means(join(day.presence() for day in plan), length) > 0.5)


def _sure(found: Audit) -> BoolArray:
    runs = [(part.start, part.end) for part in found.quiet if part.sure]
    return minutes_of(runs, len(found.household.minutes))


def _share(right: BoolArray, of: BoolArray) -> float:
    return float(np.mean(right[of])) if of.any() else float("nan")


app = typer.Typer(add_completion=False)


@app.command()
def main(
    first: Annotated[int, typer.Option(min=0, help="Seed of the first home.")] = SEEDS[0],
    homes: Annotated[int, typer.Option(min=1, help="How many homes.")] = len(SEEDS),
    days: Annotated[int, typer.Option(min=1, help="Days of each.")] = DAYS,
) -> None:
    """Print how often sleep and absence are right in homes whose plans are known."""
    for question, share in judge(range(first, first + homes), days, load_model()).shares().items():
        typer.echo(f"{question}: {share:.0%}")


if __name__ == "__main__":
    app()
