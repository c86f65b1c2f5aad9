"""`python -m meterveil.contracts NAME...`: check every law on an attacker or a defence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

from meterveil.attackers.registry import ATTACKERS, FLOORS, attacker, known_attackers
from meterveil.cli.tables import show_line, show_table
from meterveil.contracts.attackers import ATTACKER_LAWS, AttackerCase
from meterveil.contracts.defences import DEFENCE_LAWS, DefenceCase
from meterveil.contracts.law import verdicts
from meterveil.defenders import DEFENDERS, defender, known_defences
from meterveil.errors import InputError
from meterveil.plugins import ATTACKER_GROUP, DEFENCE_GROUP, left_out


def checked(name: str) -> Iterator[tuple[str, str]]:
    """Check the attacker or defence of this name; return each law and what is wrong."""
    excluded = left_out(ATTACKER_GROUP, ATTACKERS) | left_out(DEFENCE_GROUP, DEFENDERS)
    if name in excluded:
        raise InputError(excluded[name])
    if name in known_attackers():
        attacker(name)
        return verdicts(ATTACKER_LAWS, AttackerCase(partial(attacker, name), looks=name not in FLOORS))
    if name in known_defences():
        defender(name)
        return verdicts(DEFENCE_LAWS, DefenceCase(partial(defender, name), moves=name != "none"))
    known = ", ".join((*known_attackers(), *known_defences()))
    raise InputError(f"there is no attacker and no defence {name!r}; known are {known}")


def main(names: list[str]) -> int:
    """Print a line for each law; return 1 if one is broken, 2 if a name cannot be checked."""
    if not names:
        show_line("usage: python -m meterveil.contracts NAME...")
        return 2
    broken = False
    for name in names:
        try:
            results = list(checked(name))
        except InputError as error:
            show_line(str(error), "red")
            return 2
        broken |= any(wrong for _, wrong in results)
        rows = [["law", "result"], *([law, wrong or "kept"] for law, wrong in results)]
        show_table(rows, name, text_columns=("result",))
    return int(broken)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
