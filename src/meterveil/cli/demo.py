"""`meterveil demo`: train a defence for the embedded household, and attack it."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.train import Source, learn, missing_parts
from meterveil.errors import how_to_install

if TYPE_CHECKING:
    from meterveil.data.simulation import Run

TRAINED = "trained"
"""Folder of the training within that of the demo."""

_NEEDED = ("joblib", "scipy")


def demo(
    seed: opt.Seed = 0,
    out: opt.Out = Path("out/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Train nothing: three untrained defences on one day.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Also save a day with decoys as this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Train a defence for the embedded household, attack it, and write a report.

    It needs the train extra; without it, or with --quick, nothing is trained.
    """
    from meterveil.cli.tables import show_line
    from meterveil.plots.saving import check_picture

    if picture:
        check_picture(picture)
    missing = [*missing_parts(), *(name for name in _NEEDED if find_spec(name) is None)]
    if quick or missing:
        _quick(seed, out, picture)
    else:
        _whole(seed, out, picture)
    if missing:
        show_line(f"to train a defence and attack it too: {how_to_install('train')}")


def _whole(seed: int, out: Path, picture: Path | None) -> None:
    from meterveil.bench.demo import conclusion, demo_defences, demo_rows, measure
    from meterveil.bench.evaluation_page import FILES, title_of, write_evaluation
    from meterveil.bench.trial import synthetic_trial
    from meterveil.cli.tables import show_file, show_line, show_table, steps
    from meterveil.data import outputs
    from meterveil.data.load import load

    outputs.folder(out, FILES)
    household = load(opt.SYNTHETIC)
    trial = synthetic_trial(household, "many", seed)
    defences = demo_defences(_train(seed, out / TRAINED))
    with steps(len(defences) + 1, "fitting attackers") as on_done:
        results = measure(household, trial, defences, on_done)
    if picture:
        _save(results[-1].masked.example, picture)
    words = conclusion(results)
    show_table(demo_rows(results), f"{title_of(results[0])}: F1 of the strongest attacker")
    show_line(words)
    show_file("report", write_evaluation(results, out, conclusion=words))


def _train(seed: int, folder: Path) -> Path:
    """Train the manager, in place of an earlier demo's."""
    from meterveil.bench.demo import BUDGET_DAYS, PROBE
    from meterveil.cli.tables import show_line
    from meterveil.defenders.run_folder import make_room
    from meterveil.defenders.training_settings import manager_settings

    settings = manager_settings(probe=PROBE, budget_days=BUDGET_DAYS)
    make_room(folder, settings.method, replace_unfinished=True)
    figures = learn(settings, Source(seed=seed), folder).document["figures"]
    show_line(
        f"trained: {figures['decisions']:,} decisions on {figures['minutes'] / 1440:,.0f} simulated days; "
        f"moves {figures['training_days_moved_kwh']:.1f} kWh a day"
    )
    return folder


def _quick(seed: int, out: Path, picture: Path | None) -> None:
    """Compare untrained defences on a day, with attackers that need no extra package."""
    from meterveil.bench.quick_demo import FILES, attack, attack_rows, demo_runs, note, write_report
    from meterveil.cli.tables import show_file, show_notes, show_table
    from meterveil.data import outputs
    from meterveil.data.load import load

    outputs.folder(out, FILES)
    household = load(opt.SYNTHETIC)
    runs = demo_runs(household, seed)
    if picture:
        _save(next(run for run in runs if run.defence == "random_equal"), picture)
    scores = attack(household, runs)
    show_table(attack_rows(scores), f"{household.name}, {runs[0].days()[0]}: what attackers read")
    show_notes([note(scores)] if note(scores) else [])
    show_file("report", write_report(runs, scores, out))


def _save(run: Run, picture: Path) -> None:
    from meterveil.cli.tables import show_file
    from meterveil.plots.saving import save
    from meterveil.plots.simulation import hero_figure

    show_file("picture", save(hero_figure(run), picture))
