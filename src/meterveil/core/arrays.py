"""Array types of the core, its time step, and runs of minutes."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

KWH_PER_W_MINUTE = 1.0 / 60_000.0
"""Energy of one watt over one minute, the time step of the whole core."""


def runs(on: BoolArray, pause: int = 0) -> tuple[IntArray, IntArray]:
    """Return the first minute of each run of on-minutes and the minute after its last; short pauses belong to it."""
    edges = np.flatnonzero(np.diff(on.astype(np.int8), prepend=0, append=0))
    starts, stops = edges[::2], edges[1::2]
    apart = starts[1:] - stops[:-1] > pause
    return starts[np.append(True, apart)[: len(starts)]], stops[np.append(apart, True)[: len(stops)]]
