"""The contracts play with the small networks of the attackers' own tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "attackers"))
