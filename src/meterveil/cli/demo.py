"""`meterveil demo`: train a defence for the embedded household, and attack it."""

# ruff: noqa: PLC0415  heavy imports wait for the verb

from __future__ import annotations

from pathlib import Path

from meterveil.cli import options as opt
from meterveil.cli.base import check_installed
from meterveil.cli.tables import show_file, show_line, show_table, steps
from meterveil.cli.train import NEEDED, Source, learn


def demo(seed: opt.Seed = 0, out: opt.Out = Path("out/demo")) -> None:
    """Train a defence for the embedded household, attack it, and write a report."""
    check_installed("the demo", (*NEEDED, "joblib", "scipy"))
    show_line("The demo trains a defence for a synthetic household, then reads its meter with and without defences.")
    show_line("Together this takes about a minute and a half.")
    from meterveil.bench.demo import conclusion, demo_defences, demo_rows, demo_title, measure
    from meterveil.bench.evaluation_page import FILES, title_of, write_evaluation
    from meterveil.bench.trial import synthetic_trial
    from meterveil.data import outputs
    from meterveil.data.load import load

    outputs.folder(out, FILES)
    household = load(opt.SYNTHETIC)
    trial = synthetic_trial(household, "many", seed)
    defences = demo_defences(_train(seed, out / "trained"))
    with steps(len(defences) + 1, "fitting attackers") as on_done:
        results = measure(household, trial, defences, on_done)
    words = conclusion(results)
    show_table(demo_rows(results), demo_title(results, title_of(results[0])))
    show_line(words)
    show_file("report", write_evaluation(results, out, conclusion=words))


def _train(seed: int, folder: Path) -> Path:
    """Train the manager, in place of an earlier demo's."""
    from meterveil.bench.demo import BUDGET_DAYS, PROBE
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
