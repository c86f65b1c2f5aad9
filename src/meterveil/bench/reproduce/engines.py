"""Where tasks run: in processes of this machine, or on a Ray cluster. Both are joblib backends.

An engine gives back what every call returns, in any order, and raises `LostWorkerError` where a process or a
node died under its calls.
"""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Protocol

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import BrokenProcessPool

from meterveil.errors import InputError

WORKERS = 2
_POLL_SECONDS = 1.0
_KNOCK_SECONDS = 5.0
_ANSWER_SECONDS = 90.0
"""Within this a node answers, or Ray has found out that it is lost; else it is only slow."""

_TOO_FEW = "Tried to start a pool with"
"""What Ray says, in a plain ValueError, where fewer processors are left than a moment ago."""

Call = Callable[[], Any]


class LostWorkerError(Exception):
    """A process or a node died, and with it whatever it was doing."""


class Engine(Protocol):
    """Run calls somewhere."""

    def run(self, calls: Sequence[Call], while_waiting: Callable[[], object]) -> Iterator[Any]:
        """Yield what the calls return, as they end where that can be seen.

        `while_waiting` is called now and then where it cannot.
        """
        ...


@dataclass(frozen=True)
class Local:
    """Run in processes of one thread each: two beat one of two threads on networks of this size."""

    workers: int = WORKERS

    def run(self, calls: Sequence[Call], while_waiting: Callable[[], object]) -> Iterator[Any]:
        """Yield every outcome as soon as it is there."""
        with parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = Parallel(self.workers, return_as="generator_unordered", batch_size=1)
            outcomes = parallel(delayed(call)() for call in calls)
            try:
                for outcome in outcomes:  # noqa: UP028  the end is ours to see, not the inner generator's
                    yield outcome
            except BrokenProcessPool as error:
                raise LostWorkerError(str(error)) from error
            finally:
                with warnings.catch_warnings(action="ignore"):  # that work under way is given up is meant
                    outcomes.close()


@dataclass(frozen=True)
class Ray:
    """Run on a Ray cluster whose nodes see the same folders under the same names."""

    address: str | None = None
    """Such as `10.0.0.1:6379` or `auto`; None starts Ray on this machine."""
    workers: int | None = None
    """None for every processor of the cluster."""

    def run(self, calls: Sequence[Call], while_waiting: Callable[[], object]) -> Iterator[Any]:
        """Yield the outcomes once all are there: Ray's backend of joblib tells no sooner."""
        import ray  # noqa: PLC0415  optional
        from ray.util.joblib import register_ray  # noqa: PLC0415  optional

        register_ray()  # type: ignore[no-untyped-call]
        processors, arguments = self._processors(), {"num_cpus": 1}
        try:
            with parallel_config(backend="ray", ray_remote_args=arguments), _Ticking(while_waiting):
                outcomes = Parallel(processors, batch_size=1)(delayed(call)() for call in calls)
        except (ray.exceptions.RayError, ValueError) as error:
            if not isinstance(error, ray.exceptions.RayError) and _TOO_FEW not in str(error):
                raise
            raise LostWorkerError(str(error).splitlines()[0]) from error
        yield from outcomes

    def _processors(self) -> int:
        """Count the processors of the nodes that are not lost.

        Ray counts a lost node for some seconds more, and would wait for ever for processors that are gone. So
        every node is asked: one that is lost fails to answer as soon as Ray knows.
        """
        import ray  # noqa: PLC0415  optional
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415  optional

        self.connect()
        question = ray.remote(num_cpus=0, max_retries=0)(_answer)
        asked = {
            question.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False)
            ).remote(): name
            for name in _alive()
        }
        if not asked:
            raise InputError(f"the Ray cluster at {self.address} has no processors; start a node that has")
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_ANSWER_SECONDS)
        lost = {asked[reference] for reference in ready if not _has_answered(reference)}
        known = sum(count for name, count in _alive().items() if name not in lost)
        return max(1, min(known, self.workers or known))

    def connect(self) -> None:
        """Join the cluster, once; one that is started here tells nobody of its use."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray  # noqa: PLC0415  optional

        if not ray.is_initialized():
            try:
                _knock(self.address)
                ray.init(self.address, log_to_driver=False, logging_level=logging.ERROR)
            except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
                *_, reason = str(error).strip().splitlines() or [type(error).__name__]
                where = self.address or "auto"
                raise InputError(
                    f"there is no Ray cluster at {where} that lets this command in: {reason}; "
                    "start one with ray start --head"
                ) from error


def _knock(address: str | None) -> None:
    """Find out at once whether anybody listens: Ray tries for minutes."""
    host, colon, port = (address or "").rpartition(":")
    if colon and port.isdigit() and "/" not in host:
        socket.create_connection((host, int(port)), _KNOCK_SECONDS).close()


def _alive() -> dict[str, int]:
    """Count the processors of every node that Ray knows of, where it has any."""
    import ray  # noqa: PLC0415  optional

    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    counts = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]}
    return {name: count for name, count in counts.items() if count}


def _answer() -> bool:
    return True


def _has_answered(reference: Any) -> bool:
    import ray  # noqa: PLC0415  optional

    try:
        return bool(ray.get(reference))
    except ray.exceptions.RayError:
        return False


class _Ticking:
    """Call something once a second from a thread of its own."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._over = Event()
        self._thread = Thread(target=self._run, args=(call,), daemon=True)

    def _run(self, call: Callable[[], object]) -> None:
        while not self._over.wait(_POLL_SECONDS):
            with suppress(OSError):  # a folder that is being written may lose a file between two looks
                call()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
