"""`meterveil train` and `meterveil export`: train a defence, and write one as a bundle for a controller."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meterveil.cli import options as opt
from meterveil.cli.base import check_installed
from meterveil.cli.tables import progress, show_file, show_table
from meterveil.data.files import data_folder
from meterveil.errors import InputError

if TYPE_CHECKING:
    from datetime import date

    from meterveil.data.household import Household
    from meterveil.data.simulation import Setup
    from meterveil.defenders.manager.probes import Probe
    from meterveil.defenders.run_folder import TrainedRun
    from meterveil.defenders.training_settings import Settings

MANAGER, LEARNED_VEIL = "manager", "veil_manager"
"""Methods; the first is the default."""

NEEDED = ("torch", "stable_baselines3", "gymnasium", "safetensors")
"""Packages that training needs."""


@dataclass(frozen=True)
class Source:
    """Data, battery, tariff and signatures of a training, as typed; a run records them to be resumed."""

    source: str = opt.SYNTHETIC
    house: int | None = None
    data: str | None = None
    start: str | None = None
    days: int = 10
    seed: int = 0
    battery: str | None = None
    tariff: str = "paper"
    library: str | None = None
    reading: dict[str, Any] = field(default_factory=dict)
    aggregate: str = "mains"
    probe_from: str | None = None

    def setup(self) -> Setup:
        """Read battery, tariff and signatures."""
        from meterveil.data import settings, signatures
        from meterveil.data.simulation import Setup

        library = signatures.library(Path(self.library) if self.library else None)
        battery = settings.battery(Path(self.battery) if self.battery else None)
        return Setup(library, battery, settings.tariff(self.tariff), self.seed)

    def household(self) -> tuple[Household, list[date]]:
        """Read the household and choose the training days."""
        from meterveil.bench.simulation import household_for
        from meterveil.data.load import load_protocol
        from meterveil.data.protocols import PROTOCOLS
        from meterveil.defenders.training_days import known_days

        aggregate = opt.load_source(self.aggregate)
        if self.source in PROTOCOLS:
            self._check_protocol()
            protocol = replace(PROTOCOLS[self.source], aggregate=aggregate)
            return load_protocol(data_folder(self.data), protocol).select([]), list(protocol.training)
        opt.check_applies(self.source, self.house, self.reading)
        begin = opt.day_of(self.start, "--start") if self.start else None
        household = household_for(self.source, self.house, begin, self.days, aggregate, **self.reading)
        return household, known_days(household, begin)[: self.days]

    def _check_protocol(self) -> None:
        """Refuse options that the protocol of a data set fixes."""
        given = {"house": self.house is not None, "start": self.start is not None, **dict.fromkeys(self.reading, True)}
        fixed = [f"--{name}" for name, is_given in given.items() if is_given]
        if fixed:
            raise InputError(
                f"{', '.join(fixed)} cannot be used with {self.source}, whose house and days are the paper's; "
                "give the path of the data set instead"
            )


def train(
    source: Annotated[
        str, typer.Argument(help="redd or ukdale for the paper's training days; or a PATH as for simulate.")
    ] = opt.SYNTHETIC,
    *,
    method: Annotated[
        str, typer.Option(help="manager; veil_manager (levels of the veil); or ddql_flat, ddql_mi.")
    ] = MANAGER,
    preset: Annotated[
        str, typer.Option(help="fast, patient (discounts less), paper (as published) or adaptive (refits its probe).")
    ] = "fast",
    probe: Annotated[
        str | None, typer.Option(help="transformer (default), lstm, cnn, identity or denoising (refitted).")
    ] = None,
    weight: Annotated[float | None, typer.Option("--lambda", help="1: privacy only (default), 0: cost only.")] = None,
    budget_days: Annotated[float | None, typer.Option(help="Days to simulate; default: the preset's.")] = None,
    choice: Annotated[
        str | None, typer.Option(help="How the trained policy acts: sampled (default) or greedy.")
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="Loss of the probe in the reward: mse, rmse, mse_kw2 or rmse_kw.")
    ] = None,
    masked: Annotated[bool, typer.Option("--masked", help="Choose only among actions that move energy.")] = False,
    probe_from: Annotated[
        Path | None, typer.Option(help="Use the probe of this run folder instead of fitting one.")
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Accept signatures with more power than the battery has.")
    ] = False,
    seed: opt.Seed = 0,
    start: Annotated[str | None, typer.Option(help="First training day; default: the first one.")] = None,
    days: Annotated[int, typer.Option(min=1, help="Training days, at most; a data set's are fixed.")] = 10,
    data: opt.Data = None,
    house: opt.House = None,
    library: opt.Library = None,
    battery: opt.BatteryFile = None,
    tariff: opt.Tariff = None,
    out: opt.Out = Path("out/train"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training in --out with its own options.")
    ] = False,
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Train a defence for a household and write a run folder, which evaluate, simulate and export read.

    Use --resume to continue an interrupted run.
    """
    from meterveil.defenders import run_folder
    from meterveil.defenders.training_settings import settings_for, settings_from_json

    check_installed("training", NEEDED)
    if resume:
        document = run_folder.read_document(out)
        if document["status"] == run_folder.FINISHED:
            raise InputError(f"the training in {out} is finished; there is nothing to resume")
        _show(learn(settings_from_json(document["options"]), Source(**document["asked"]), out), out)
        return
    fitted = _probe_of(probe_from, method, probe) if probe_from else None
    given: dict[str, object] = {"probe": fitted.kind if fitted else probe, "weight": weight, "loss": loss}
    given |= {"budget_days": budget_days, "choice": choice, "clip_signatures": clip or None, "masked": masked or None}
    settings = settings_for(method, preset, **{name: value for name, value in given.items() if value is not None})
    if library and method != MANAGER:
        raise InputError(f"{method} replays no signatures; leave --library out")
    typed = Source(
        source=source,
        house=house,
        data=_text(data),
        start=start,
        days=days,
        seed=seed,
        battery=_text(battery),
        tariff=tariff or "paper",
        library=_text(library),
        reading=opt.reading(timestamp, power, unit, timezone, appliances),
        aggregate=aggregate,
        probe_from=_text(probe_from),
    )
    run_folder.make_room(out, method)
    if fitted:
        from meterveil.defenders.manager import probes

        probes.save(fitted, out)
    _show(learn(settings, typed, out), out)


def export(
    defence: Annotated[
        str, typer.Argument(help="Name of a defence, random_equal:7.5, or a folder of meterveil train.")
    ],
    *,
    library: opt.Library = None,
    battery: opt.BatteryFile = None,
    tariff: opt.Tariff = None,
    out: opt.Out = Path("out/bundle"),
) -> None:
    """Write a bundle: policy and its weights, library, battery, tariff, a card, and the hashes of all files.

    A bundle acts with NumPy only. Signatures, battery and tariff of a training are kept unless given.
    """
    from meterveil.bench.simulation import defence_for
    from meterveil.data import settings
    from meterveil.defenders.bundle_export import card_of, export_bundle
    from meterveil.defenders.defence import common_setup

    exported = defence_for(defence)
    own_battery = settings.battery(battery) if battery else None
    own_tariff = settings.tariff(tariff) if tariff else None
    setup = common_setup([exported], library, own_battery, own_tariff)
    document = exported.trainings[0].document if exported.trainings else None
    card = card_of(exported.method, document)
    show_file("bundle", export_bundle(exported.policies[0], setup, card, out))


def learn(settings: Settings, source: Source, out: Path) -> TrainedRun:
    """Train, or continue the training in the folder, with a progress bar."""
    from meterveil.bench.results import current_commit
    from meterveil.defenders.training_settings import ManagerSettings, VeilSettings

    setup = source.setup()
    household, days = source.household()
    notes = {"asked": asdict(source), "commit": current_commit()}
    with progress() as bar:
        if isinstance(settings, ManagerSettings):
            from meterveil.defenders.manager import manager_training

            probe = bar.add_task(f"{settings.probe} probe", total=settings.probe_epochs)
            manager = bar.add_task("manager", total=settings.budget_minutes)

            def on_update(update: manager_training.Update) -> None:
                reward = f"manager: reward {update.reward_per_decision:.3g} per decision"
                if update.relative_error is not None:
                    reward += f", probe's error {update.relative_error:.2f} of the prior's"
                bar.update(probe, visible=False)
                bar.update(manager, completed=update.minutes, description=reward)

            return manager_training.learn(
                household,
                days,
                setup,
                settings,
                out,
                notes,
                lambda epoch, loss: bar.update(probe, completed=epoch + 1),
                on_update,
            )
        if isinstance(settings, VeilSettings):
            from meterveil.defenders.veil import manager_learning

            rounds = bar.add_task(settings.method, total=settings.rounds)

            def on_round(update: manager_learning.Round) -> None:
                words = f"{settings.method}: {update.bits:.0f} bits beyond the choices, cost {update.cost:+.3f} a day"
                bar.update(rounds, advance=1, description=words)

            return manager_learning.learn(household, days, setup, settings, out, notes, on_round)
        from meterveil.defenders.ddql import ddql_training

        task = bar.add_task(settings.method, total=settings.epochs)

        def on_epoch(epoch: ddql_training.Epoch) -> None:
            reward = f"{settings.method}: reward {epoch.reward:.3g} per minute"
            bar.update(task, completed=epoch.days / settings.slots, description=reward)

        return ddql_training.learn(household, days, setup, settings, out, notes, on_epoch)


def _show(run: TrainedRun, out: Path) -> None:
    figures, last = run.document["figures"], run.document["curve"][-1]
    if run.method == MANAGER:
        probe = run.document["probe"]
        refitted = last.get("relative_error")
        rows = [
            ["decisions", f"{figures['decisions']:,}"],
            ["days simulated", f"{figures['minutes'] / 1440:,.0f}"],
            ["reward per decision, last update", f"{last['reward_per_decision']:.4g}"],
            [f"error of the {probe['kind']} probe without a defence", f"{probe['rmse_w']:.1f} W"],
            *([["its error relative to the prior's, last refit", f"{refitted:.2f}"]] if refitted is not None else []),
            ["RMS battery power on training days", f"{figures['training_days_rms_w']:.0f} W"],
        ]
    elif run.method == LEARNED_VEIL:
        rows = [
            ["days simulated", f"{last['days']:,.0f}"],
            ["bits a day beyond the choices, simulated days", f"{last['bits']:,.0f}"],
            ["cost a day, simulated days", f"{last['cost']:+.3f}"],
            ["seconds", f"{figures['training_seconds']:.0f}"],
        ]
    else:
        rows = [
            ["days simulated", f"{last['days']:,}"],
            ["reward per minute, last epoch", f"{last['reward']:.4g}"],
            ["standard deviation of the load", f"{figures['training_days_load_std_w']:.0f} W"],
            ["standard deviation of the meter", f"{figures['training_days_meter_std_w']:.0f} W"],
        ]
    rows += [
        ["throughput on training days", f"{figures['training_days_moved_kwh']:.2f} kWh a day"],
        ["state of charge at midnight", f"{figures['training_days_end_soc']:.2f}"],
    ]
    show_table([["figure", "value"], *rows], f"{run.document['household']}: trained {run.method}")
    show_file("run", out)


def _probe_of(folder: Path, method: str, asked: str | None) -> Probe:
    """Read the probe of a run folder; refuse another kind than asked."""
    from meterveil.defenders.manager import probes

    if method != MANAGER:
        raise InputError(f"{method} has no probe; leave --probe-from out")
    probe = probes.load(folder)
    if asked not in (None, probe.kind):
        raise InputError(f"--probe-from {folder} holds the probe {probe.kind}, not {asked}; leave --probe out")
    return probe


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.resolve())
