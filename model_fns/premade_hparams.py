"""Hyper-parameters of the premade Estimators."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from model_fns import hparams

_DISTANCES = ("squared_euclidean", "cosine")
_STARTS = ("kmeans_plus_plus", "random")


def _check_not_negative(settings: object, *names: str) -> None:
    for name in names:
        hparams.check(getattr(settings, name) >= 0, f"{name} may not be below 0")


def _check_dropout(dropout: float) -> None:
    hparams.check(0 <= dropout < 1, "dropout must be in [0, 1)")


@dataclasses.dataclass(frozen=True)
class Baseline(hparams.Objective):
    """Hyper-parameters of the baseline, which learns nothing but its bias.

    Attributes:
      learning_rate: Of FTRL.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ()
    """Those with which the model's variables change, so that no checkpoint fits."""

    learning_rate: float = 0.3

    def __post_init__(self):
        super().__post_init__()
        hparams.check(self.learning_rate > 0, "learning_rate must be above 0")


@dataclasses.dataclass(frozen=True)
class Linear(hparams.Objective):
    """Hyper-parameters of the premade linear model.

    Attributes:
      learning_rate: Of FTRL.
      l1: L1 strength of FTRL; weights that matter little become exactly 0.
      l2: L2 strength of FTRL.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ()

    learning_rate: float = 0.2
    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        hparams.check(self.learning_rate > 0, "learning_rate must be above 0")
        _check_not_negative(self, "l1", "l2")


@dataclasses.dataclass(frozen=True)
class LinearSdca:
    """Hyper-parameters of the premade linear model under SDCA.

    Attributes:
      l1: L1 strength.
      l2: L2 strength, above 0, over the sum of all rows' losses; with more of it
        training converges faster.
      adaptive: Whether rows are sampled by how much they still change the model.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ()

    l1: float = 0.0
    l2: float = 1.0
    adaptive: bool = False

    def __post_init__(self):
        hparams.check(self.l2 > 0, "l2 must be above 0")
        _check_not_negative(self, "l1")


@dataclasses.dataclass(frozen=True)
class Dnn(hparams.Objective, hparams.Optimization):
    """Hyper-parameters of the premade network.

    Attributes:
      hidden_units: Widths of the layers.
      dropout: Share of activations dropped in training, in [0, 1).
      batch_norm: Whether the layers are batch-normalised.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = (
        *hparams.Optimization.DECIDES_VARIABLES,
        "hidden_units",
        "batch_norm",
    )

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.0
    batch_norm: bool = False

    def __post_init__(self):
        hparams.Objective.__post_init__(self)
        hparams.Optimization.__post_init__(self)
        hparams.check_widths(self.hidden_units)
        _check_dropout(self.dropout)


@dataclasses.dataclass(frozen=True)
class WideDeep(Dnn):
    """Hyper-parameters of the premade wide & deep model.

    Those of the optimizer are the deep part's; the wide part has FTRL.

    Attributes:
      wide_learning_rate: Of the wide part.
      wide_l1: L1 strength of the wide part.
      wide_l2: L2 strength of the wide part.
    """

    wide_learning_rate: float = 0.05
    wide_l1: float = 0.0
    wide_l2: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        hparams.check(self.wide_learning_rate > 0, "wide_learning_rate must be above 0")
        _check_not_negative(self, "wide_l1", "wide_l2")


@dataclasses.dataclass(frozen=True)
class KMeans:
    """Hyper-parameters of mini-batch k-means (Sculley 2010).

    Attributes:
      clusters: Number of clusters.
      distance: One of _DISTANCES.
      start: How the first centres are drawn from the first rows: one of _STARTS.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = ("clusters",)

    clusters: int = 8
    distance: str = "squared_euclidean"
    start: str = "kmeans_plus_plus"

    def __post_init__(self):
        hparams.check(2 <= self.clusters <= 2**16, "clusters must be from 2 to 65536")
        for name, allowed in (("distance", _DISTANCES), ("start", _STARTS)):
            hparams.check(
                getattr(self, name) in allowed,
                f"{name}={getattr(self, name)} is unknown; it is {', '.join(allowed)}",
            )
