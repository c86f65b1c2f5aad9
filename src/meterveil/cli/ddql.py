"""The part of `meterveil train` that trains a defence to compare with, by double Q-learning."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meterveil.errors import InputError

if TYPE_CHECKING:
    from datetime import date

    from meterveil.data.household import Household
    from meterveil.defenders.ddql.run import LoadedDdql, Options
    from meterveil.defenders.ddql.training import Epoch

PPO = "ppo"
METHODS = (PPO, "ddql_flat", "ddql_mi")

_ONLY_PPO = {"probe": "transformer", "choice": "sampled", "clip": False, "library": None}
"""Options that say nothing to a DDQL defence -> their defaults."""

Asked = Mapping[str, Any]


def is_asked(method: str, resumed: Path | None) -> bool:
    """Tell whether a DDQL defence is to be trained, by its name or by the run that goes on."""
    from meterveil.defenders.ddql.run import FORMAT
    from meterveil.defenders.runs import format_of

    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; known are {', '.join(METHODS)}")
    return format_of(resumed) == FORMAT if resumed else method != PPO


def train(
    asked: Asked, out: Path, resume: bool, days_of: Callable[[Asked], tuple[Household, list[date]]]
) -> None:
    """Train, or go on with the training in `out`, and show what came of it."""
    from meterveil.bench.results import current_commit
    from meterveil.data import settings
    from meterveil.data.simulation import Setup
    from meterveil.defenders.ddql.run import learn

    asked = _resumed(out) if resume else _fresh(asked, out)
    options = _options(asked)
    battery = settings.battery(Path(asked["battery"]) if asked["battery"] else None)
    setup = Setup(settings.library(None), battery, settings.tariff(asked["tariff"]), asked["seed"])
    household, days = days_of(asked)
    with _progress(options) as on_epoch:
        run = learn(
            household, days, setup, options, out, {"asked": asked, "commit": current_commit()}, on_epoch
        )
    _show(run, out)


def _options(asked: Asked) -> Options:
    from meterveil.defenders.ddql.run import Options
    from meterveil.defenders.ddql.settings import preset

    chosen, days = preset(asked["preset"]), asked["budget_days"]
    return Options(asked["method"], chosen if days is None else chosen.within(days), asked["weight"])


def _resumed(out: Path) -> Asked:
    from meterveil.defenders.ddql.run import FORMAT
    from meterveil.defenders.runs import read_unfinished

    asked: Asked = read_unfinished(out, FORMAT)["asked"]
    return asked


def _fresh(asked: Asked, out: Path) -> Asked:
    from meterveil.defenders.ddql.run import FORMAT
    from meterveil.defenders.runs import make_room

    changed = [f"--{name}" for name, default in _ONLY_PPO.items() if asked[name] != default]
    if changed:
        raise InputError(f"{asked['method']} takes no {', '.join(changed)}; that is for --method {PPO}")
    make_room(out, FORMAT)
    return asked


@contextmanager
def _progress(options: Options) -> Iterator[Callable[[Epoch], None]]:
    """Show how far the training is, and what it earns."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(options.method, total=options.settings.epochs)

        def on_epoch(epoch: Epoch) -> None:
            said = f"{options.method}: earns {epoch.reward:.3g} a minute"
            bar.update(task, completed=epoch.days / options.settings.slots, description=said)

        yield on_epoch


def _show(run: LoadedDdql, out: Path) -> None:
    from meterveil.cli.tables import show_file, show_table

    figures, last = run.document["figures"], run.document["curve"][-1]
    rows = [
        ["what", "value"],
        ["days simulated", f"{last['days']:,}"],
        ["reward a minute, at the end", f"{last['reward']:.4g}"],
        ["moved on a training day", f"{figures['training_days_moved_kwh']:.2f} kWh"],
        ["state of charge at the end of a day", f"{figures['training_days_end_soc']:.2f}"],
        ["load on training days, standard deviation", f"{figures['training_days_load_std_w']:.0f} W"],
        ["meter on training days, standard deviation", f"{figures['training_days_meter_std_w']:.0f} W"],
    ]
    show_table(rows, f"{run.document['household']}: {run.document['options']['method']} trained")
    show_file("run", out)
