"""Hyper-parameters of models: typed, with defaults, read from `name=value,...`."""

from __future__ import annotations

import dataclasses
import itertools
import math
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from pipeline.types import UserError

_T = TypeVar("_T")
_BOOLS = {"true": True, "yes": True, "false": False, "no": False}
_MAX_WIDTH = 2**20

LOSSES = ("default", "focal", "smoothed", "huber", "absolute", "quantile")
OPTIMIZERS = ("adam", "adamw", "lion", "sgd", "adagrad", "rmsprop", "ftrl")
SCHEDULES = ("constant", "exponential", "piecewise", "cosine")


def check(condition: bool, message: str) -> None:
    """Raises ValueError unless the condition holds; for `__post_init__`."""
    if not condition:
        raise ValueError(message)


def check_widths(hidden_units: tuple[int, ...]) -> None:
    """Checks the widths of a network's layers."""
    check(
        bool(hidden_units) and all(0 < n <= _MAX_WIDTH for n in hidden_units),
        f"hidden_units needs at least one width, each from 1 to {_MAX_WIDTH}",
    )


def _check_choice(name: str, value: str, allowed: Collection[str]) -> None:
    check(value in allowed, f"{name}={value} is unknown; it is {', '.join(allowed)}")


def _check_at_least(settings: Any, minimum: float, *names: str) -> None:
    for name in names:
        check(
            getattr(settings, name) >= minimum, f"{name} may not be below {minimum:g}"
        )


@dataclasses.dataclass(frozen=True)
class Objective:
    """What is minimised; for models with a head of `heads.head`.

    Attributes:
      loss: "default" is the one that fits the label. Of classes "focal" or
        "smoothed"; of a normal regression "huber", "absolute" or "quantile".
        `losses` has the formulas.
      focal_gamma: Of "focal": 0 is cross entropy.
      smoothing: Of "smoothed": share of the label's probability that is spread
        evenly over all classes.
      huber_delta: Of "huber": the error where squares become straight lines.
      quantile: Of "quantile": the one to predict.
      class_weights: Factor of the loss of each class, in the order of the declared
        classes; empty for none. It counts in the loss, not in other metrics.
    """

    loss: str = "default"
    focal_gamma: float = 2.0
    smoothing: float = 0.1
    huber_delta: float = 1.0
    quantile: float = 0.5
    class_weights: tuple[float, ...] = ()

    def __post_init__(self):
        _check_choice("loss", self.loss, LOSSES)
        _check_at_least(self, 0, "focal_gamma")
        check(0 <= self.smoothing < 1, "smoothing must be in [0, 1)")
        check(self.huber_delta > 0, "huber_delta must be above 0")
        check(0 < self.quantile < 1, "quantile must be in (0, 1)")
        check(
            all(weight >= 0 for weight in self.class_weights)
            and (not self.class_weights or any(self.class_weights)),
            "class_weights may not be below 0, and one must be above",
        )


@dataclasses.dataclass(frozen=True)
class Optimization:
    """How weights are changed; `optimizers.make` makes it so.

    Attributes:
      optimizer: One of OPTIMIZERS.
      learning_rate: The highest rate of the schedule.
      schedule: One of SCHEDULES, as a function of the number of updates;
        `schedules` has the formulas.
      warmup_steps: Updates over which the rate first rises from 0, evenly.
      decay_steps: Of "exponential" and "cosine".
      decay_rate: Of "exponential".
      final_rate: Of "cosine": what it ends at, as a share of learning_rate.
      boundaries: Of "piecewise": numbers of updates, rising.
      factors: Of "piecewise": of learning_rate after each boundary.
      momentum: Of sgd and rmsprop.
      weight_decay: Of adamw and lion.
      clip_norm: Gradients are scaled down to this global norm; 0 for no limit.
      clip_value: Each number of a gradient is cut to plus or minus this; 0 for no
        limit. It comes before clip_norm.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ("optimizer", "momentum")
    """Those with which the model's variables change, so that no checkpoint fits."""

    optimizer: str = "adam"
    learning_rate: float = 0.001
    schedule: str = "constant"
    warmup_steps: int = 0
    decay_steps: int = 1000
    decay_rate: float = 0.9
    final_rate: float = 0.0
    boundaries: tuple[int, ...] = ()
    factors: tuple[float, ...] = ()
    momentum: float = 0.0
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    clip_value: float = 0.0

    def __post_init__(self):
        _check_choice("optimizer", self.optimizer, OPTIMIZERS)
        _check_choice("schedule", self.schedule, SCHEDULES)
        check(self.learning_rate > 0, "learning_rate must be above 0")
        _check_at_least(self, 0, "warmup_steps", "weight_decay")
        _check_at_least(self, 0, "clip_norm", "clip_value")
        _check_at_least(self, 1, "decay_steps")
        check(0 < self.decay_rate <= 1, "decay_rate must be in (0, 1]")
        check(0 <= self.final_rate <= 1, "final_rate must be in [0, 1]")
        check(0 <= self.momentum < 1, "momentum must be in [0, 1)")
        self._check_effect("momentum", "optimizer", "sgd", "rmsprop")
        self._check_effect("weight_decay", "optimizer", "adamw", "lion")
        self._check_effect("decay_steps", "schedule", "exponential", "cosine")
        self._check_effect("decay_rate", "schedule", "exponential")
        self._check_effect("final_rate", "schedule", "cosine")
        self._check_effect("boundaries", "schedule", "piecewise")
        self._check_effect("factors", "schedule", "piecewise")
        check(
            all(a < b for a, b in itertools.pairwise((0, *self.boundaries))),
            "boundaries must rise, from above 0",
        )
        check(all(f >= 0 for f in self.factors), "factors may not be below 0")
        check(
            len(self.boundaries) == len(self.factors),
            "boundaries and factors need as many elements each",
        )
        check(
            self.schedule != "piecewise" or bool(self.boundaries),
            "schedule=piecewise needs boundaries and factors",
        )

    def _check_effect(self, name: str, choice: str, *values: str) -> None:
        """Refuses a setting that would have no effect."""
        default = Optimization.__dataclass_fields__[name].default
        check(
            getattr(self, name) == default or getattr(self, choice) in values,
            f"{name} has no effect with {choice}={getattr(self, choice)}; it belongs"
            f" to {', '.join(values)}",
        )


@dataclasses.dataclass(frozen=True)
class Custom(Objective, Optimization):
    """What every model under `adapter.model_fn_from_keras` takes.

    Attributes:
      accumulate: Steps whose gradients are averaged into one update of the weights;
        schedules count updates.
      l1: Strength of the L1 penalty, l1 * sum(|w|), of all trainable variables of at
        least two dimensions, that is of no bias.
      l2: Strength of the L2 penalty, l2 * sum(w^2), of the same.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = (
        *Optimization.DECIDES_VARIABLES,
        "accumulate",
    )

    accumulate: int = 1
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self):
        Objective.__post_init__(self)
        Optimization.__post_init__(self)
        _check_at_least(self, 1, "accumulate")
        _check_at_least(self, 0, "l1", "l2")


@dataclasses.dataclass(frozen=True)
class Free:
    """Hyper-parameters of a user's own model: whatever names it knows.

    Attributes:
      values: Whole numbers, numbers, true and false, texts, and lists of these.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ()

    values: Mapping[str, Any]


def to_values(settings: Any) -> dict[str, Any]:
    """Returns hyper-parameters by name, as JSON knows them but for tuples."""
    if isinstance(settings, Free):
        return dict(settings.values)
    return dataclasses.asdict(settings)


def from_values(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """The reverse of `to_values`.

    Raises:
      TypeError: A name is unknown.
      ValueError: A value is not allowed.
    """
    return kind(values) if kind is Free else kind(**values)


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yields name and value of each setting; commas in brackets divide none.

    Raises:
      ValueError: The text is not of the form name=value,name=[value,value].
    """
    parts = [""]
    inside = False
    for character in text:
        if character in "[]":
            if inside == (character == "["):
                raise ValueError
            inside = not inside
        if character == "," and not inside:
            parts.append("")
        else:
            parts[-1] += character
    if inside:
        raise ValueError
    for part in filter(None, map(str.strip, parts)):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError
        yield name.strip(), value.strip()


def _convert(text: str, kind: Any) -> Any:
    """Returns the value that a text stands for, or raises ValueError or KeyError."""
    if typing.get_origin(kind) is tuple:
        element = typing.get_args(kind)[0]
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1].strip()
        return tuple(_convert(t.strip(), element) for t in text.split(",") if text)
    if kind is bool:
        return _BOOLS[text.lower()]
    if kind is str:
        return text
    value = kind(text)
    if not math.isfinite(value):
        raise ValueError
    return value


def _described(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return "a list such as [64,32]"
    return {bool: "true or false", float: "a finite number"}.get(kind, "a whole number")


def _guessed(text: str) -> Any:
    """Returns a number or a bool where the text is one, else the text."""
    if text.startswith("[") and text.endswith("]"):
        parts = filter(None, map(str.strip, text[1:-1].split(",")))
        return tuple(map(_guessed, parts))
    for kind in (int, float, bool):
        try:
            return _convert(text, kind)
        except (ValueError, KeyError, OverflowError):
            continue
    return text


def _free(given: Iterable[tuple[str, str]]) -> Free:
    values: dict[str, Any] = {}
    for name, text in given:
        if name in values:
            raise UserError(f"--hparams: {name} stands twice")
        values[name] = _guessed(text)
    return Free(values)


def parse(text: str, kind: type[_T]) -> _T:
    """Reads `name=value,name=[a,b]` into a hyper-parameter dataclass.

    Raises:
      UserError: Naming the flag, the hyper-parameter and what is allowed.
    """
    try:
        given = list(_settings(text))
    except ValueError:
        raise UserError(
            f"--hparams={text}: not of the form name=value,name=[value,value]"
        ) from None
    if kind is Free:
        return _free(given)
    hints = typing.get_type_hints(kind)
    kinds = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
    values = {}
    for name, value in given:
        if name not in kinds:
            raise UserError(
                f"--hparams: {name!r} is unknown to this model; it has"
                f" {', '.join(kinds)}"
            )
        if name in values:
            raise UserError(f"--hparams: {name} stands twice")
        try:
            values[name] = _convert(value, kinds[name])
        except (ValueError, KeyError, OverflowError):
            raise UserError(
                f"--hparams: {name}={value} is not {_described(kinds[name])}"
            ) from None
    try:
        return kind(**values)
    except ValueError as error:
        raise UserError(f"--hparams: {error}") from None
