"""`meterveil train`: let a manager learn which signatures to replay in a household, and when."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meterveil.cli import ddql
from meterveil.cli import options as opt
from meterveil.data.files import data_folder
from meterveil.errors import InputError, how_to_install

if TYPE_CHECKING:
    from datetime import date

    from meterveil.data.household import Household
    from meterveil.defenders.manager.run import Listeners, LoadedRun, Options
    from meterveil.defenders.manager.training import Update

_NEEDED = ("torch", "stable_baselines3", "gymnasium", "safetensors")


@dataclass(frozen=True)
class Asked:
    """Keep what was typed, in a form that a run can write down and read again."""

    source: str = opt.SYNTHETIC
    house: int | None = None
    data: str | None = None
    start: str | None = None
    days: int = 10
    preset: str = "fast"
    probe: str = "transformer"
    weight: float = 1.0
    budget_days: float | None = None
    choice: str = "sampled"
    clip: bool = False
    seed: int = 0
    battery: str | None = None
    tariff: str = "paper"
    library: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    aggregate: str = "mains"
    method: str = ddql.PPO


def train(
    source: Annotated[
        str,
        typer.Argument(
            help="redd or ukdale for the paper's days of a data set; or PATH as simulate takes it."
        ),
    ] = opt.SYNTHETIC,
    *,
    method: Annotated[str, typer.Option(help="ppo; or ddql_flat or ddql_mi, to compare with.")] = ddql.PPO,
    preset: Annotated[
        str, typer.Option(help="fast, patient (a longer horizon) or paper (its own settings).")
    ] = "fast",
    probe: Annotated[str, typer.Option(help="transformer, lstm, cnn or identity.")] = "transformer",
    weight: Annotated[float, typer.Option("--lambda", help="1: privacy alone, 0: cost alone.")] = 1.0,
    budget_days: Annotated[
        float | None, typer.Option(help="Days to simulate; default: the preset's.")
    ] = None,
    choice: Annotated[
        str, typer.Option(help="How the policy acts later: sampled, as it learns, or greedy.")
    ] = "sampled",
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    start: Annotated[str | None, typer.Option(help="First training day; default: the first one.")] = None,
    days: Annotated[int, typer.Option(min=1, help="Training days, at most; a data set's are fixed.")] = 10,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ukdale and redd; default: $METERVEIL_DATA.")
    ] = None,
    house: opt.House = None,
    library: Annotated[Path | None, typer.Option(help="JSON file of signatures to replay.")] = None,
    clip: Annotated[bool, typer.Option(help="Accept signatures stronger than the battery.")] = False,
    battery: Annotated[Path | None, typer.Option(help='JSON file, such as {"capacity_kwh": 5}.')] = None,
    tariff: Annotated[
        str, typer.Option(help="paper, flat:0.25, a .json file of bands or a .csv file of prices.")
    ] = "paper",
    out: opt.Out = Path("out/train"),
    resume: Annotated[
        bool, typer.Option(help="Go on with the training in --out, as it was asked for.")
    ] = False,
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Train a defence: a probe on the household's own load, then the manager. Writes a run for export.

    A training that was stopped, however, goes on with --resume.
    """
    missing = missing_parts()
    if missing:
        raise InputError(f"training needs {', '.join(missing)}; get it with {how_to_install('train')}")
    given = opt.reading(timestamp, power, unit, timezone, appliances)
    asked = Asked(
        source=source,
        house=house,
        data=_text(data),
        start=start,
        days=days,
        preset=preset,
        probe=probe,
        weight=weight,
        budget_days=budget_days,
        choice=choice,
        clip=clip,
        seed=seed,
        battery=_text(battery),
        tariff=tariff,
        library=_text(library),
        reading=given,
        aggregate=aggregate,
        method=method,
    )
    if ddql.is_asked(method, out if resume else None):
        ddql.train(asdict(asked), out, resume, lambda known: _days_of(Asked(**known)))
        return
    if resume:
        asked = _resumed(out)
    else:
        make_room(out)
    _show(learn(asked, out), out)


def missing_parts() -> list[str]:
    """Name what a training needs and is not installed."""
    return [name for name in _NEEDED if find_spec(name) is None]


def _resumed(out: Path) -> Asked:
    from meterveil.defenders.manager.run import FORMAT
    from meterveil.defenders.runs import read_unfinished

    return Asked(**read_unfinished(out, FORMAT)["asked"])


def make_room(out: Path, even_unfinished: bool = False) -> None:
    """Let a manager's training into a folder, if what is there may give way."""
    from meterveil.defenders import runs
    from meterveil.defenders.manager import probes, run

    gives_way = (runs.FINISHED, runs.UNFINISHED) if even_unfinished else (runs.FINISHED,)
    runs.make_room(out, run.FORMAT, (run.LIBRARY, probes.CARD), gives_way=gives_way)


def learn(asked: Asked, out: Path) -> LoadedRun:
    """Train as asked, or go on with what is in the folder, with a progress bar."""
    from meterveil.bench.results import current_commit
    from meterveil.data import settings, signatures
    from meterveil.data.simulation import Setup
    from meterveil.defenders.manager import run

    options = _options(asked)
    library = signatures.library(Path(asked.library) if asked.library else None)
    battery = settings.battery(Path(asked.battery) if asked.battery else None)
    setup = Setup(library, battery, settings.tariff(asked.tariff), asked.seed)
    household, days = _days_of(asked)
    notes = {"asked": asdict(asked), "commit": current_commit()}
    with _progress(options) as listeners:
        return run.learn(household, days, setup, options, out, notes, listeners)


def _options(asked: Asked) -> Options:
    from meterveil.defenders.lessons import check_lambda
    from meterveil.defenders.manager.policy import check_choice
    from meterveil.defenders.manager.presets import preset
    from meterveil.defenders.manager.probes import check_kind
    from meterveil.defenders.manager.run import Options

    chosen = preset(asked.preset)
    if asked.budget_days is not None:
        chosen = replace(chosen, budget_days=asked.budget_days)
    return Options(
        chosen, check_kind(asked.probe), check_lambda(asked.weight), asked.clip, check_choice(asked.choice)
    )


def _days_of(asked: Asked) -> tuple[Household, list[date]]:
    """Find the household and the days that teach."""
    from meterveil.bench.simulation import household_for
    from meterveil.data.load import load
    from meterveil.data.protocols import PROTOCOLS

    if asked.source in PROTOCOLS:
        protocol = PROTOCOLS[asked.source]
        house = data_folder(asked.data) / protocol.dataset
        return load(house, protocol.house, appliances=[]), list(protocol.training)
    opt.check_applies(asked.source, asked.house, asked.reading)
    begin = opt.day_of(asked.start, "--start") if asked.start else None
    submeters = opt.from_submeters(asked.aggregate)
    household = household_for(asked.source, asked.house, begin, asked.days, submeters, **asked.reading)
    return household, _known_days(household, begin)[: asked.days]


def _known_days(household: Household, begin: date | None) -> list[date]:
    """List the days from `begin` on of which enough is known to learn from."""
    import numpy as np

    from meterveil.defenders.manager.reward import LEAST_KNOWN

    return [
        day
        for day in household.days()
        if (begin is None or day >= begin)
        and np.mean(~np.isnan(household.day(day).aggregate_w)) >= LEAST_KNOWN
    ]


@contextmanager
def _progress(options: Options) -> Iterator[Listeners]:
    """Show how far probe and manager are, and what the manager earns."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    from meterveil.defenders.manager.probe_training import Recipe
    from meterveil.defenders.manager.run import Listeners

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        probe = bar.add_task(f"{options.probe} probe", total=Recipe().epochs)
        manager = bar.add_task("manager", total=options.preset.budget_minutes)

        def on_update(update: Update) -> None:
            earned = f"{update.reward_per_decision:.3g} a decision"
            bar.update(probe, visible=False)
            bar.update(manager, completed=update.minutes, description=f"manager: earns {earned}")

        yield Listeners(lambda epoch, loss: bar.update(probe, completed=epoch + 1), on_update)


def _show(run: LoadedRun, out: Path) -> None:
    from meterveil.cli.tables import show_file, show_table

    figures, probe = run.document["figures"], run.document["probe"]
    last = run.document["curve"][-1]
    rows = [
        ["what", "value"],
        ["decisions learned from", f"{figures['decisions']:,}"],
        ["days simulated", f"{figures['minutes'] / 1440:,.0f}"],
        ["reward a decision, at the end", f"{last['reward_per_decision']:.4g}"],
        [f"{probe['kind']} probe: error on clean load", f"{probe['rmse_w']:.1f} W"],
        ["moved on a training day", f"{figures['training_days_moved_kwh']:.2f} kWh"],
        ["battery power on training days, RMS", f"{figures['training_days_rms_w']:.0f} W"],
        ["state of charge at the end of a day", f"{figures['training_days_end_soc']:.2f}"],
    ]
    show_table(rows, f"{run.document['household']}: trained")
    show_file("run", out)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())
