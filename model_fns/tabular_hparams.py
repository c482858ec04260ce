"""Hyper-parameters of the tabular models from tf.keras layers."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from model_fns import hparams

_STRUCTURES = ("parallel", "stacked")


@dataclasses.dataclass(frozen=True)
class Network(hparams.Custom):
    """Hyper-parameters of a network of dense layers; part of several models.

    Attributes:
      hidden_units: Widths of the network's layers.
      dropout: Share of activations dropped in training, in [0, 1).
      batch_norm: Whether the layers are batch-normalised.
      batch_norm_momentum: Of the moving averages, in (0, 1).
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = (
        *hparams.Custom.DECIDES_VARIABLES,
        "hidden_units",
        "batch_norm",
    )

    hidden_units: tuple[int, ...] = (64, 32)
    dropout: float = 0.1
    batch_norm: bool = True
    batch_norm_momentum: float = 0.99

    def __post_init__(self):
        super().__post_init__()
        hparams.check_widths(self.hidden_units)
        hparams.check(0 <= self.dropout < 1, "dropout must be in [0, 1)")
        hparams.check(
            0 < self.batch_norm_momentum < 1, "batch_norm_momentum must be in (0, 1)"
        )


@dataclasses.dataclass(frozen=True)
class Dcn(Network):
    """Hyper-parameters of the deep & cross network, version 2.

    Attributes:
      cross_layers: Number of cross layers; with n of them the logits hold products
        of up to n + 1 features.
      rank: Inner width of the cross layers' matrices; 0 for full ones.
      experts: Number of low-rank matrices that a gate mixes in each cross layer; 1
        for no mixture. More than 1 needs a rank.
      structure: "parallel": cross layers and network read the features side by side;
        "stacked": the network reads what the cross layers make of them.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = (
        *Network.DECIDES_VARIABLES,
        "cross_layers",
        "rank",
        "experts",
        "structure",
    )

    cross_layers: int = 2
    rank: int = 0
    experts: int = 1
    structure: str = "parallel"

    def __post_init__(self):
        super().__post_init__()
        hparams.check(1 <= self.cross_layers <= 64, "cross_layers must be from 1 to 64")
        hparams.check(self.rank >= 0, "rank may not be below 0")
        hparams.check(1 <= self.experts <= 64, "experts must be from 1 to 64")
        hparams.check(
            self.experts == 1 or self.rank > 0, "experts above 1 need a rank above 0"
        )
        hparams.check(
            self.structure in _STRUCTURES,
            f"structure={self.structure} is unknown; it is {', '.join(_STRUCTURES)}",
        )


@dataclasses.dataclass(frozen=True)
class DeepFm(Network):
    """Hyper-parameters of the factorisation machine with a network.

    Attributes:
      vector_width: Width of each feature's vector.
    """

    DECIDES_VARIABLES: ClassVar[tuple[str, ...]] = (
        *Network.DECIDES_VARIABLES,
        "vector_width",
    )

    vector_width: int = 8

    def __post_init__(self):
        super().__post_init__()
        hparams.check(1 <= self.vector_width <= 1024, "vector_width: from 1 to 1024")
