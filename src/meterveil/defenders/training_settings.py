"""Settings of the trainers: everything that changes what is learned, with presets by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from math import ceil
from typing import Any, ClassVar, Literal, TypeVar

from meterveil.errors import InputError, unknown

MANAGER = "manager"
"""Method of the paper's own defence."""
LEARNED_VEIL = "veil_manager"
"""Method of the veil with a learned manager as its decider."""

Choice = Literal["sampled", "greedy"]
CHOICES: tuple[Choice, ...] = ("sampled", "greedy")
"""`sampled` draws from the policy, as in training (Algorithm 1); `greedy` takes the likeliest action."""

DENOISING = "denoising"
"""Probe that is refitted to the manager's masked days while the manager learns."""
PROBES = ("transformer", "lstm", "cnn", "identity", DENOISING)
LOSSES = ("mse", "rmse", "mse_kw2", "rmse_kw")


def _check_lambda(weight: float) -> None:
    if not 0.0 <= weight <= 1.0:
        raise InputError(f"lambda is {weight:g}; allowed is 0 (cost only) to 1 (privacy only)")


def _check_known(what: str, name: str, known: Any) -> None:
    if name not in known:
        raise unknown(what, name, known)


def _check_positive(settings: object, *names: str) -> None:
    for name in names:
        if not getattr(settings, name) > 0:
            raise InputError(f"{name} is {getattr(settings, name):g}; give more than 0")


@dataclass(frozen=True)
class ManagerSettings:
    """Settings of the manager's PPO training; the defaults are the paper's (appendix E.4)."""

    VERSION: ClassVar[int] = 1
    """Raise it when a change of the code alters what is learned."""

    probe: str = "transformer"
    """Probe that the reward is computed with: transformer, lstm, cnn, identity or denoising."""
    weight: float = 1.0
    """Lambda of `eq:total_reward`: 1 is privacy only, 0 is cost only."""
    budget_days: float = 300.0
    """Simulated days of 1,440 minutes (D6); training ends with the first update after them."""
    choice: Choice = "sampled"
    """How the trained policy acts: sampled or greedy. The paper does not say."""
    clip_signatures: bool = False
    """Accept signatures with more power than the battery has; the battery cuts them off."""
    learning_rate: float = 2e-5
    anneal: bool = False
    """Lower the learning rate to zero in proportion to the budget that is left."""
    gamma: float = 0.99
    discount: Literal["decision", "minute"] = "decision"
    """Unit of time of gamma (D6)."""
    gae_lambda: float = 0.95
    horizon: int = 4096
    """Decisions of all slots together between two updates."""
    epochs: int = 4
    minibatch: int = 2048
    clip: float = 0.1
    entropy: float = 0.01
    target_kl: float | None = 0.01
    loss: str = "mse"
    """Loss of the probe in the reward: mse, rmse, mse_kw2 or rmse_kw. The paper does not say."""
    reward_scale: float = 1.0
    """Factor on the reward that the learner sees; it does not change the best policy."""
    masked: bool = False
    """Choose only among idling and actions that move energy (feasibility mask)."""
    slots: int = 64
    """Households that are simulated in parallel."""
    probe_epochs: int = 5
    refit_updates: int = 2
    """Updates of the manager between two refits of a denoising probe; other probes stay as they are."""

    def __post_init__(self) -> None:
        _check_known("probe", self.probe, PROBES)
        _check_known("choice", self.choice, CHOICES)
        _check_known("loss", self.loss, LOSSES)
        _check_lambda(self.weight)
        _check_positive(
            self, "budget_days", "learning_rate", "epochs", "minibatch", "slots", "probe_epochs", "refit_updates"
        )
        if self.horizon < 1 or self.horizon % self.slots:
            raise InputError(
                f"horizon is {self.horizon}, which does not divide into {self.slots} slots; give a multiple"
            )

    @property
    def method(self) -> str:
        return MANAGER

    @property
    def budget_minutes(self) -> int:
        """Simulated minutes after which training ends."""
        return round(self.budget_days * 1440)


@dataclass(frozen=True)
class DdqlSettings:
    """Settings of a DDQL training; the defaults are the published ones, spread over many parallel days."""

    VERSION: ClassVar[int] = 1
    """Raise it when a change of the code alters what is learned."""

    method: str = "ddql_flat"
    """`ddql_flat` or `ddql_mi`."""
    weight: float = 1.0
    """Lambda: 1 is privacy only, 0 is cost only."""
    epochs: int = 12
    """Epochs of `slots` parallel days: 768 days, published are 600 to 800."""
    slots: int = 64
    block_minutes: int = 120
    """Minutes of each day between two rounds of updates."""
    updates: int = 64
    """Updates in a round: one for every 120 minutes of every day, as published."""
    minibatch: int = 128
    learning_rate: float = 2.5e-4
    optimiser: Literal["rmsprop", "adam"] = "rmsprop"
    anneal: bool = False
    """Lower the learning rate to zero with the last epoch."""
    gamma: float = 1.0
    """Discount per minute."""
    target_every: int = 62
    """Updates between two copies to the target network: 7,500 minutes as published."""
    buffer: int = 150_000
    hidden: int = 64
    step_w: float = 50.0
    """Distance between two battery powers to choose from."""
    explore_share: float = 0.1
    """Share of the epochs over which the probability of a random action falls to `explore_least`."""
    explore_least: float = 0.05
    near_share: float = 0.0
    """Share of the random actions that are drawn near the best one instead of from all."""
    restart_share: float = 0.0
    """Share of the batteries that get a random SoC and a random spent budget at the start of a block.

    Random powers spend a day's budget within hours; without restarts the evening is only seen without it."""
    h_hidden: int = 44
    h_layers: int = 2
    h_learning_rate: float = 1e-3
    h_passes: int = 1
    """Passes of the H-network over the days of an epoch (DDQL-MI)."""

    def __post_init__(self) -> None:
        _check_known("method", self.method, ("ddql_flat", "ddql_mi"))
        _check_lambda(self.weight)
        counts = ("epochs", "slots", "block_minutes", "updates", "minibatch", "target_every", "buffer")
        _check_positive(self, *counts, "h_passes", "learning_rate", "step_w")
        if not 0.0 <= self.gamma <= 1.0:
            raise InputError(f"gamma is {self.gamma:g}; allowed is 0 to 1")

    def within(self, budget_days: float) -> DdqlSettings:
        """Return these settings for another number of simulated days; fewer slots get fewer updates."""
        if budget_days <= 0:
            raise InputError(f"budget_days is {budget_days:g}; give more than 0")
        slots = min(self.slots, ceil(budget_days))
        updates = ceil(self.updates * slots / self.slots)
        return replace(self, slots=slots, epochs=ceil(budget_days / slots), updates=updates)


@dataclass(frozen=True)
class VeilSettings:
    """Settings of the training of the veil's learned manager."""

    VERSION: ClassVar[int] = 1
    """Raise it when a change of the code alters what is learned."""

    method: str = LEARNED_VEIL
    weight: float = 0.5
    """Lambda of the reward: minus lambda times thousands of certified bits, minus (1 - lambda) times cost."""
    rounds: int = 30
    """Updates of the networks."""
    horizon: int = 15_360
    """Decisions of all slots together between two updates."""
    slots: int = 768
    """Households that are simulated in parallel."""
    learning_rate: float = 1e-3
    epochs: int = 5
    minibatch: int = 1536
    gamma: float = 0.998
    """Discount per half hour: per decision, a rescue would make later costs count less."""
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.003
    """Weight of the entropy in the first update; it falls to zero, as the learning rate does."""
    target_kl: float | None = None
    scales: tuple[float, ...] = (0.7, 0.85, 1.0, 1.2, 1.4)
    """Factors of the load, for other seasons."""
    records: int = 6
    """Records of recent days for each scale, drawn from the training days."""

    masked: ClassVar[bool] = False
    discount: ClassVar[str] = "minute"
    """The step of time is the half hour here."""

    def __post_init__(self) -> None:
        _check_lambda(self.weight)
        _check_positive(self, "rounds", "slots", "minibatch", "epochs", "learning_rate", "records")
        if not self.scales or min(self.scales) <= 0.0:
            raise InputError(f"scales are {self.scales}; give at least one, each above 0")
        if self.horizon < 1 or self.horizon % self.slots:
            raise InputError(
                f"horizon is {self.horizon}, which does not divide into {self.slots} slots; give a multiple"
            )


Settings = ManagerSettings | DdqlSettings | VeilSettings
AnySettings = TypeVar("AnySettings", ManagerSettings, DdqlSettings, VeilSettings)

_FAST = ManagerSettings(
    learning_rate=1e-3,
    anneal=True,
    horizon=2048,
    epochs=10,
    minibatch=256,
    clip=0.2,
    entropy=0.005,
    target_kl=0.03,
    loss="rmse",
    reward_scale=0.1,
)

_PATIENT = replace(_FAST, gamma=1.0, gae_lambda=0.99)

MANAGER_PRESETS: dict[str, ManagerSettings] = {
    "fast": _FAST,
    "patient": _PATIENT,
    "paper": ManagerSettings(),
    "adaptive": replace(_PATIENT, probe=DENOISING, masked=True, reward_scale=1.0, probe_epochs=1),
}
"""`fast` was chosen on validation days (docs/training.md), `patient` discounts the evening less, and `adaptive` is paid
for what a reader that adapts cannot tell."""

DDQL_PRESETS: dict[str, DdqlSettings] = {
    "fast": DdqlSettings(
        epochs=10,
        slots=128,
        updates=100,
        minibatch=512,
        learning_rate=1e-3,
        optimiser="adam",
        anneal=True,
        gamma=0.95,
        target_every=120,
        buffer=300_000,
        explore_share=0.3,
        near_share=0.5,
        restart_share=0.5,
        h_learning_rate=3e-3,
        h_passes=2,
    ),
    "paper": DdqlSettings(),
}
"""`fast` was chosen on validation days (docs/defences.md), `paper` is as published."""

METHODS: dict[str, type[Settings]] = {
    MANAGER: ManagerSettings,
    "ddql_flat": DdqlSettings,
    "ddql_mi": DdqlSettings,
    LEARNED_VEIL: VeilSettings,
}


def settings_for(method: str = MANAGER, preset: str = "fast", **changes: Any) -> Settings:
    """Return the settings of a method's preset with some fields changed; `budget_days` fits all methods."""
    _check_known("method", method, METHODS)
    if method == MANAGER:
        return _changed(manager_settings(preset), changes)
    if method == LEARNED_VEIL:
        _check_known("preset", preset, ("fast",))
        return _changed(VeilSettings(), changes)
    _check_known("preset", preset, DDQL_PRESETS)
    budget_days = changes.pop("budget_days", None)
    settings = replace(DDQL_PRESETS[preset], method=method)
    return _changed(settings if budget_days is None else settings.within(budget_days), changes)


def manager_settings(preset: str = "fast", **changes: Any) -> ManagerSettings:
    """Return the manager's settings of a preset with some fields changed."""
    _check_known("preset", preset, MANAGER_PRESETS)
    return _changed(MANAGER_PRESETS[preset], changes)


def deciding(settings: Settings) -> dict[str, Any]:
    """List the settings that can change what is learned; without a denoising probe nothing is refitted."""
    values = asdict(settings)
    if values.get("probe") != DENOISING:
        values.pop("refit_updates", None)
    return values


def settings_from_json(values: dict[str, Any]) -> Settings:
    """Build the settings that a run recorded."""
    made: Any = METHODS.get(values.get("method", MANAGER), ManagerSettings)
    known = {field.name for field in fields(made)}
    if set(values) != known:
        differing = ", ".join(sorted(set(values) ^ known))
        raise InputError(f"the settings of a run differ from this version's in {differing}; train again")
    built: Settings = made(**{name: tuple(part) if isinstance(part, list) else part for name, part in values.items()})
    return built


def _changed(settings: AnySettings, changes: dict[str, Any]) -> AnySettings:
    known = {field.name for field in fields(settings)} - {"method"}
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise InputError(f"{settings.method} has no setting {', '.join(unknown)}; leave it out")
    return replace(settings, **changes)
