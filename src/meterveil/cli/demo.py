"""`meterveil demo`: train a defence for the embedded household, attack it, and show what is still read."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.train import Asked, learn, make_room, missing_parts
from meterveil.errors import how_to_install

if TYPE_CHECKING:
    from meterveil.data.simulation import Run

TRAINED = "trained"
"""Folder of the run within that of the demo."""

_NEEDED = ("joblib", "scipy")


def demo(
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    out: opt.Out = Path("out/demo"),
    quick: Annotated[bool, typer.Option(help="Train nothing: three defences on one day.")] = False,
    picture: Annotated[
        Path | None, typer.Option(help="Also save a day with decoys as this .png, .svg or .html file.")
    ] = None,
) -> None:
    """Train a defence for the embedded household, attack it before and after, and write a report.

    It needs the train extra; without it, or with --quick, nothing is trained.
    """
    from meterveil import plots
    from meterveil.cli.tables import show_line

    if picture:
        plots.check_picture(picture)
    missing = [*missing_parts(), *(name for name in _NEEDED if find_spec(name) is None)]
    if quick or missing:
        _quick(seed, out, picture)
    else:
        _whole(seed, out, picture)
    if missing:
        show_line(f"to train a defence and attack it too: {how_to_install('train')}")


def _whole(seed: int, out: Path, picture: Path | None) -> None:
    from meterveil.bench.evaluation_page import FILES, title_of, write_evaluation
    from meterveil.bench.trial import synthetic_trial
    from meterveil.cli.tables import show_file, show_line, show_table
    from meterveil.data import outputs
    from meterveil.data.load import load
    from meterveil.demo_trained import conclusion, demo_contenders, demo_rows, habits_f1, measure
    from meterveil.reports import write_household

    outputs.folder(out, FILES)
    household = load(opt.SYNTHETIC)
    trial = synthetic_trial(household, "many", seed)
    show_file("household", write_household(household, trial.test.days[0], out))
    found = demo_contenders(_train(seed, out / TRAINED))
    with _progress(len(found) + 1) as on_done:
        measured = measure(household, trial, found, on_done)
    show_table(demo_rows(measured), f"{title_of(measured[0])}: what the strongest attacker still reads")
    show_line(
        f"F1 is 1 where every use is read; habits alone give {habits_f1(measured):.2f}. Fixed attackers "
        "never saw the defence, adaptive ones learned from its meter; leak is what they read beyond habits, "
        "and below 0 they are misled or learned too little."
    )
    if picture:
        _save(measured[-1].masked.example, picture)
    show_line(f"in short: {conclusion(measured)}", "bold")
    show_file("report", write_evaluation(measured, out, conclusion=conclusion(measured)))


def _train(seed: int, folder: Path) -> Path:
    """Train the manager anew, or go on with a demo that was stopped; one of another seed gives way."""
    from meterveil.cli.tables import show_line
    from meterveil.defenders.manager.run import FORMAT, read_document
    from meterveil.defenders.runs import UNFINISHED, format_of
    from meterveil.demo_trained import BUDGET_DAYS, PROBE

    asked = Asked(probe=PROBE, budget_days=BUDGET_DAYS, seed=seed)
    left = read_document(folder) if format_of(folder) == FORMAT else {}
    before = left.get("asked", {})
    if left.get("status") != UNFINISHED or before != asdict(asked):
        is_demos = before == {**asdict(asked), "seed": before.get("seed")}
        make_room(folder, even_unfinished=is_demos)
    figures = learn(asked, folder).document["figures"]
    show_line(
        f"trained: {figures['decisions']:,} decisions on {figures['minutes'] / 1440:,.0f} simulated days; "
        f"moves {figures['training_days_moved_kwh']:.1f} kWh a day"
    )
    return folder


def _quick(seed: int, out: Path, picture: Path | None) -> None:
    """Compare defences on a day, attack it with what the package itself needs, and write a report."""
    from meterveil.cli.simulate import show_runs
    from meterveil.cli.tables import show_file, show_table
    from meterveil.data import outputs
    from meterveil.data.load import load
    from meterveil.demo import attack, attack_rows, attack_section
    from meterveil.reports import DEMO_FILES, write_demo
    from meterveil.simulate import demo_runs

    outputs.folder(out, DEMO_FILES)
    runs = demo_runs(seed)
    show_runs({run.defence: run for run in runs}, f"{runs[0].household}, {runs[0].days()[0]}")
    if picture:
        _save(next(run for run in runs if run.defence == "random_equal"), picture)
    found = attack(load(opt.SYNTHETIC), runs)
    show_table(attack_rows(found), "what attackers read")
    show_file("report", write_demo(runs, out, [attack_section(found)]))


def _save(run: Run, picture: Path) -> None:
    from meterveil import plots
    from meterveil.cli.tables import show_file

    show_file("picture", plots.save(plots.hero_figure(run), picture))


@contextmanager
def _progress(steps: int) -> Iterator[Callable[[str], None]]:
    """Show how many of the meters were attacked, and which was the last."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("attackers learn", total=steps)
        yield lambda name: bar.update(task, advance=1, description=f"attacked: {name}")
