from typing import Any

import numpy as np
import numpy.typing as npt

def add_up(
    text: npt.NDArray[np.uint8] | bytes, minute: npt.NDArray[Any], total: npt.NDArray[Any], count: npt.NDArray[Any], /
) -> tuple[int, int, int] | None: ...
