"""Array types of the core, and its time step."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KWH_PER_W_MINUTE = 1.0 / 60_000.0
"""Energy of one watt over one minute, the time step of the whole core."""
