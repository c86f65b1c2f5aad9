"""`meterveil audit`: show what can be read out of a meter."""

# ruff: noqa: PLC0415, PLR0913  heavy imports wait for the verb; a verb has as many arguments as it has options

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from meterveil.cli import options as opt
from meterveil.cli.tables import show_file, show_line, show_notes, show_table, steps
from meterveil.errors import how_to_install

if TYPE_CHECKING:
    from meterveil.audit.findings import Audit
    from meterveil.audit.model import Model
    from meterveil.audit.submeters import Trained
    from meterveil.data.household import Household


def audit(
    path: opt.Source,
    *,
    house: opt.House = None,
    first: Annotated[str | None, typer.Option("--from", help="First day; default: a month before --to.")] = None,
    to: Annotated[str | None, typer.Option(help="Day after the last; default: the end of the record.")] = None,
    day: Annotated[str | None, typer.Option(help="Day to show in detail; default: the one with most findings.")] = None,
    no_train: Annotated[
        bool, typer.Option("--no-train", help="Do not learn from sub-meters, where there are any.")
    ] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also train a network on the sub-meters; takes a few minutes.")
    ] = False,
    seed: opt.Seed = 0,
    out: opt.OutPerInput = None,
    timestamp: opt.Timestamp = None,
    power: opt.Power = None,
    unit: opt.Unit = None,
    timezone: opt.Timezone = None,
    aggregate: opt.Aggregate = "mains",
    appliances: opt.Appliances = None,
) -> None:
    """Read appliances, sleep and absence out of a meter; write a page and a summary."""
    from meterveil.audit.audit_page import FILES, write_audit
    from meterveil.audit.findings import audit as read
    from meterveil.audit.findings import cut_out, load_any, load_undefended
    from meterveil.audit.model import load_model
    from meterveil.data import outputs
    from meterveil.data.splits import check_recorded

    begin, end, shown = (
        opt.day_of(text, option) if text else None for text, option in ((first, "--from"), (to, "--to"), (day, "--day"))
    )
    folder = opt.out_folder(out, "audit", path, house)
    outputs.folder(folder, FILES)
    options = opt.reading(timestamp, power, unit, timezone, appliances)
    opt.check_applies(path, house, options)
    household = cut_out(load_any(path, house, options).metered_by(opt.load_source(aggregate)), begin, end)
    if shown:
        check_recorded(household, [shown])
    model = load_model()
    result = read(household, model)
    trained = _train(household, model, seed, thorough) if not (no_train or result.is_coarse) else None
    _show(result, trained)
    undefended = load_undefended(path, options)
    if undefended and not result.is_coarse:
        _compare(result, cut_out(undefended, begin, end), model)
    show_file("page", write_audit(result, model, trained, folder, shown))


def _train(household: Household, model: Model, seed: int, thorough: bool) -> Trained | None:
    """Train attackers on sub-meters, where there are any and the packages are installed."""
    from meterveil.audit.submeters import QUICK, THOROUGH, metered, missing_extra, train_and_score

    if not metered(household).appliances_w:
        return None
    names = THOROUGH if thorough else QUICK
    extra = missing_extra(names)
    if extra:
        show_notes([f"learning from the sub-meters needs more packages; get them with {how_to_install(extra)}"])
        return None
    with steps(len(names), "learning from the sub-meters (--no-train skips it)") as on_done:
        return train_and_score(household, model, seed, names, on_done=lambda job: on_done(job.name))


def _show(result: Audit, trained: Trained | None) -> None:
    from meterveil.audit.audit_page import coarse_warning, headline, score_rows, use_rows

    show_notes(result.household.notes)
    show_line(f"{result.household.name}: {headline(result)}")
    if result.is_coarse:
        show_line(coarse_warning(result))
    else:
        show_table(use_rows(result), "read by the shipped model", ["mostly at", "sure of"])
    if trained:
        show_table(score_rows(trained), f"scored on {len(trained.test)} later days", ["attacker"])


def _compare(result: Audit, undefended: Household, model: Model) -> None:
    """Print what the same days show without the battery."""
    from meterveil.audit import before_after as reader

    found = reader.compare(model, undefended.aggregate_w, result.household.aggregate_w)
    show_table(reader.found_rows(found, undefended.aggregate_w), reader.TITLE)
    show_line(reader.CAUTION)
