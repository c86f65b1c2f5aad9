"""Cards as a whole reproduction leaves them, made up: figures near the paper's or times a factor."""

from meterveil.attackers.registry import PAPER_SIX
from meterveil.bench import cards
from meterveil.bench.cards import Card
from meterveil.bench.reported import cases as printed_cases
from meterveil.bench.reported.claimed import claimed, labels

PHYSICAL = {"throughput_kwh": 7.5, "soc_end": 0.48, "soc_neutral_cost": 0.6, "training_seconds": 1800.0}
FURTHER = {
    "baseline_comparison": ["random_equal", "flat", "flat_decoys", "ours (paper's settings)"],
    "probe_ablation": ["identity"],
    "lambda_sweep": [f"lambda {weight}" for weight in (0, 0.25, 0.5, 0.75, 1)],
    "many_days": ["none", "random_equal", "flat", "flat_decoys", "ours"],
}
"""Table -> rows that the paper does not print."""


def headline(table, dataset, label, columns, threat="fixed", days=1, note="", attackers=()):
    """Cards of a defence as a whole; an interval where there are many days."""
    settings = {"attackers": list(attackers)} if attackers else {}
    row = f"headline, {label}, {threat}"
    made = {}
    for column, value in columns.items():
        made[column] = value
        if days > 1 and value is not None and not column.endswith(("significant", "cases")):
            made |= {f"{column}_low": value - abs(value) / 10, f"{column}_high": value + abs(value) / 10}
    return [
        Card(table, row, column, dataset, value, None, None, range5(), days, threat, settings, note)
        for column, value in made.items()
    ]


def battery(table, dataset, label, columns, days=1):
    """Cards of what the battery did."""
    row = f"battery, {label}"
    return [
        Card(table, row, column, dataset, value, seeds=range5(), n_days=days)
        for column, value in columns.items()
    ]


def case(table, dataset, label, attacker, target, columns, threat="fixed", note=""):
    """Cards of what an attacker reads of a target."""
    row = f"{attacker} {target}, {label}, {threat}"
    return [
        Card(table, row, column, dataset, value, None, 0.01, range5(), threat_model=threat, note=note)
        for column, value in columns.items()
    ]


def range5():
    return tuple(range(5))


def papers_cases(dataset, without=("toaster",)):
    """The paper's cases, as if they had come out of a measurement."""
    made = []
    for row in printed_cases(dataset).to_dict("records"):
        metric = row["metric"]
        columns = {metric: row["masked"], f"{metric}_delta": row["delta"], f"{metric}_p": row["p_value"]}
        note = ""
        if row["target"] in without:
            columns, note = dict.fromkeys(columns), f"not measured: no {row['target']} here"
        made += case("overall_transfer", dataset, "ours", row["attacker"], row["target"], columns, note=note)
    return merged(made)


def merged(made):
    """Keep the cards of a row together: they are one file."""
    return sorted(made, key=lambda card: card.row)


def row_of(table, dataset, label, number, factor=1.0, days=1):
    """All cards of one row: the paper's figures times a factor where it prints them."""
    printed = {
        column: value for (d, row, column), value in claimed(table).items() if (d, row) == (dataset, label)
    }
    plain = {
        "rmse_increase_percent": 15.0 * number,
        "f1_reduction_percent": 9.0 * number,
        "rmse_significant": 12.0,
        "f1_significant": 14.0,
        "cases": 18.0,
        "energy_cost": 0.02 * number,
        "degradation_cost": 0.05 * number,
        "total_cost": 0.07 * number,
    }
    known = {column: printed.get(column, value) for column, value in plain.items()}
    changes = {column: known[column] * factor for column in ("rmse_increase_percent", "f1_reduction_percent")}
    counts = {
        "rmse_significant": known["rmse_significant"],
        "f1_significant": known["f1_significant"],
        "rmse_cases": known["cases"],
        "f1_cases": known["cases"],
    }
    reads = {
        "strongest_f1": 0.7 - 0.04 * number,
        "f1_leak": 1 - 0.1 * number,
        "strongest_f1_raw": 0.72,
        "prior_f1": 0.2,
    }
    costs = {column: known[column] for column in ("energy_cost", "degradation_cost", "total_cost")}
    physical = {**PHYSICAL, "throughput_kwh": 0.9 * number, "soc_neutral_cost": 0.06 * number}
    for metric in ("mae", "sae"):
        if f"{metric}_increase_percent" in printed:
            changes[f"{metric}_increase_percent"] = factor * printed[f"{metric}_increase_percent"]
            counts |= {f"{metric}_significant": 13.0, f"{metric}_cases": 18.0}
    made = headline(table, dataset, label, {**changes, **counts, **reads}, days=days)
    made += battery(table, dataset, label, {**costs, **physical}, days)
    adaptive = {**reads, "strongest_f1": 0.72 - 0.02 * number, "f1_leak": 1 - 0.05 * number}
    made += headline(table, dataset, label, adaptive, "adaptive", days)
    for attacker in PAPER_SIX[:2]:
        columns = {"rmse": 200.0, "rmse_delta": 100.0, "f1": 0.2, "f1_delta": -0.5, "event_f1": 0.3}
        made += case(table, dataset, label, attacker, "kettle", columns)
        made += case(table, dataset, label, attacker, "aggregate", {"rmse": 500.0, "rmse_delta": 350.0})
    return [*made, Card(table, f"meter kettle, {label}", "information_bits", dataset, 0.05, seeds=range5())]


def attacks():
    """What attackers read of a bare meter, and how two of them adapt."""
    made, scores = [], {"rmse": 30.0, "f1": 0.6, "f1_head": 0.7}
    for attacker in (*PAPER_SIX, "mean", "off", "prior"):
        made += [
            Card(
                "strength_10_training_paper_day", f"{attacker} fridge", column, "redd", value, reported=value
            )
            for column, value in scores.items()
        ]
    for attacker in ("seq2point", "fhmm"):
        for copies, row in (("none", "without defence"), (0, "0 copies"), (12, "12 copies")):
            step = {} if copies == "none" else {"copies": copies, "epochs": None}
            settings = {"defence": "random_equal", **step}
            made += [
                Card(
                    "adaptive_random_equal",
                    f"{attacker} fridge, {row}",
                    column,
                    "redd",
                    value,
                    settings=settings,
                )
                for column, value in scores.items()
            ]
    return made


def reproduction():
    """Every table of the report."""
    made = attacks()
    for dataset, factor in (("ukdale", 0.95), ("redd", 0.7)):
        row = row_of("overall_transfer", dataset, "ours", 9, factor)
        made += [card for card in row if card.row.startswith(("headline", "battery"))] + papers_cases(dataset)
    for table in (
        "baseline_comparison",
        "probe_ablation",
        "signature_size_ablation",
        "battery_sensitivity",
        "lambda_sweep",
        "heldout_day_generalization",
        "heldout_day_generalization_redd",
        "many_days",
    ):
        dataset = "redd" if table.endswith("redd") else "ukdale"
        for number, label in enumerate([*labels(table, dataset), *FURTHER.get(table, ())]):
            if label.endswith("house 4") and dataset == "ukdale":
                columns = {"rmse_increase_percent": None, "f1_reduction_percent": None}
                made += headline(table, dataset, label, columns, note="not measured: no house 4 here")
            else:
                days = 126 if table == "many_days" else 1
                made += row_of(table, dataset, label, number, 1.0 + 0.04 * (number % 5), days)
    return made


def write_reproduction(folder):
    """Write every table of the report into a folder of results."""
    cards.write(folder, reproduction())
    return folder
