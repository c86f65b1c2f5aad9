"""`meterveil audit`: show anyone what a stranger reads out of their meter."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.errors import how_to_install

if TYPE_CHECKING:
    from meterveil.attackers.fitting import Job
    from meterveil.audit.findings import Audit
    from meterveil.audit.model import Model
    from meterveil.audit.submeters import Trained
    from meterveil.data.household import Household


def audit(
    path: opt.Source,
    *,
    house: opt.House = None,
    first: Annotated[
        str | None, typer.Option("--from", help="First day; default: a month before --to.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Day behind the last; default: the end of the record.")
    ] = None,
    day: Annotated[str | None, typer.Option(help="Day to show in detail; default: the most telling.")] = None,
    train: Annotated[
        bool, typer.Option(help="Where sub-meters are known, also learn from them and score.")
    ] = True,
    thorough: Annotated[
        bool, typer.Option(help="Also let a network learn from the sub-meters; takes a few minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all chance.")] = 0,
    out: opt.Out = Path("out/audit"),
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    appliances: opt.Appliances = None,
) -> None:
    """Read appliances, sleep and absence out of a meter; write a page and a summary."""
    from meterveil.audit.audit_page import FILES, write_audit
    from meterveil.audit.findings import audit as read
    from meterveil.audit.model import load_model
    from meterveil.audit.record import cut_out, load_any
    from meterveil.cli.tables import show_file
    from meterveil.data import outputs
    from meterveil.data.splits import check_recorded

    begin, end, shown = (
        opt.day_of(text, option) if text else None
        for text, option in ((first, "--from"), (to, "--to"), (day, "--day"))
    )
    outputs.folder(out, FILES)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    household = cut_out(load_any(path, house, options), begin, end)
    if shown:
        check_recorded(household, [shown])
    model = load_model()
    found = read(household, model)
    trained = _train(household, model, seed, thorough) if train and not found.is_coarse else None
    _show(found, trained)
    show_file("page", write_audit(found, model, trained, out, shown))


def _train(household: Household, model: Model, seed: int, thorough: bool) -> Trained | None:
    """Learn from sub-meters, where there are any and what it takes is installed."""
    from meterveil.audit.submeters import QUICK, THOROUGH, can_train, metered, train_and_score
    from meterveil.cli.tables import show_notes

    if not metered(household).appliances_w:
        return None
    names = THOROUGH if thorough else QUICK
    if not can_train(names):
        show_notes([f"learning from the sub-meters needs more; get it with {how_to_install('train')}"])
        return None
    with _progress(len(names)) as on_done:
        return train_and_score(household, model, seed, names, on_done=on_done)


@contextmanager
def _progress(attackers: int) -> Iterator[Callable[[Job], None]]:
    """Show how many attackers have learned and for how long; each learns all appliances at once."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("learning from the sub-meters (--no-train leaves it out)", total=attackers)

        def on_done(job: Job) -> None:
            bar.update(task, advance=1, description=f"{job.name} has learned")

        yield on_done


def _show(found: Audit, trained: Trained | None) -> None:
    from meterveil.audit import sentences
    from meterveil.cli.tables import show_line, show_notes, show_table

    show_notes(found.household.notes)
    show_line(f"{found.household.name}: {sentences.headline(found)}")
    if found.is_coarse:
        show_line(sentences.coarse_warning(found))
    else:
        show_table(sentences.use_rows(found), "read by the shipped model", ["mostly at", "sure of"])
    if trained:
        show_table(sentences.score_rows(trained), f"scored on {len(trained.test)} later days", ["attacker"])
