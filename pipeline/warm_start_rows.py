"""Which rows of another model's variables stand for the same things here.

Imports no TensorFlow: names and shapes of variables are enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from pipeline.model_dir import TrainedModel
from pipeline.types import (
    Bucketized,
    Crossed,
    Feature,
    Hashed,
    Image,
    fixed_size,
    is_category,
    is_looked_up,
)

FRESH = -1
"""Stands for a row that the other model does not have."""
_TABLE = r"(?:weights|embedding_weights|table/embeddings)"
_FIRST_LAYERS = re.compile(r"(?:^|/)(?:hiddenlayer_0|hidden_0/dense)/kernel(?:/|$)")


def _leaf_name(model: TrainedModel, name: str) -> str:
    part = model.declaration.features[name]
    return f"{name}_bucketized" if isinstance(part, Bucketized) else name


def _column_name(model: TrainedModel, feature: Feature) -> str:
    """Returns the feature column's name, by which premade models name variables."""
    if isinstance(feature, Crossed):
        return "_X_".join(sorted(_leaf_name(model, name) for name in feature.of))
    name = _leaf_name(model, feature.name)
    if getattr(feature, "weights", None) is not None:
        return f"{name}_weighted_by_.{feature.name}.weights"
    return name


def _ids(model: TrainedModel, feature: Feature) -> int:
    """Returns how many ids a categorical feature has."""
    if is_looked_up(feature):
        terms = model.constants.vocabularies[feature.name]
        return len(terms) + feature.oov_buckets
    if isinstance(feature, Bucketized):
        return len(model.constants.boundaries[feature.name]) + 1
    return fixed_size(feature)


class Correspondence:
    """Rows of variables of `old` and `new`, two models of this pipeline.

    A term keeps what was learned for it wherever it stands now; out-of-vocabulary rows
    stay where there are as many. A cross loses its weights where a term has left one of
    its vocabularies, since then ids mean other combinations.
    """

    def __init__(self, old: TrainedModel, new: TrainedModel):
        self._old = old
        self._new = new
        self._inputs = {
            premade: self._input_layer(premade) for premade in (True, False)
        }

    def rows(
        self, name: str, old_shape: Sequence[int], new_shape: Sequence[int]
    ) -> np.ndarray | None:
        """Returns for each row of a variable here the row there, or FRESH.

        Args:
          name: The variable's name here; slots of optimizers end in theirs.
          old_shape: Its shape there.
          new_shape: Its shape here.

        Returns:
          Row numbers, or None where the shapes have nothing to do with each other.
        """
        if len(old_shape) != len(new_shape) or old_shape[1:] != new_shape[1:]:
            return None
        if not new_shape:
            return np.zeros([0], np.int64)
        for feature in self._new.declaration.features.values():
            if is_category(feature) and self._is_table(name, feature):
                return self._fitting(self._block(feature), old_shape, new_shape)
        layer = self._inputs["dnn/" in name]
        if layer is not None:
            old_width, block = layer
            widths = (old_width, len(block))
            fits = (old_shape[0], new_shape[0]) == widths
            if fits and (widths[0] != widths[1] or _FIRST_LAYERS.search(name)):
                return block
        if old_shape[0] != new_shape[0]:
            return None
        return np.arange(new_shape[0])

    def _fitting(self, rows, old_shape, new_shape) -> np.ndarray | None:
        fits = rows is not None and len(rows) == new_shape[0]
        return rows if fits and rows.max(initial=FRESH) < old_shape[0] else None

    def _is_table(self, name: str, feature: Feature) -> bool:
        places = {feature.name, _column_name(self._new, feature)}
        if getattr(feature, "shared", None) is not None:
            places.add(feature.shared)
        pattern = "|".join(map(re.escape, sorted(places)))
        return (
            re.search(
                rf"/(?:{pattern})(?:(?:_shared)?_embedding)?/{_TABLE}(?:/|$)", name
            )
            is not None
        )

    def _block(self, feature: Feature) -> np.ndarray | None:
        """Returns the rows of a categorical feature's ids; None for another feature."""
        old = self._old.declaration.features.get(feature.name)
        if type(old) is not type(feature) or is_looked_up(old) != is_looked_up(feature):
            return None
        if is_looked_up(feature):
            return self._terms(feature, old)
        size = _ids(self._new, feature)
        if _ids(self._old, old) != size:
            return None
        if isinstance(feature, Crossed):
            same = old.of == feature.of
            if not same or any(self._ids_moved(part) for part in feature.of):
                return np.full([size], FRESH)
        return np.arange(size)

    def _terms(self, new: Feature, old: Feature) -> np.ndarray:
        there = self._old.constants.vocabularies[old.name]
        place = {term: i for i, term in enumerate(there)}
        terms = self._new.constants.vocabularies[new.name]
        rows = [place.get(term, FRESH) for term in terms]
        for bucket in range(new.oov_buckets):
            same = old.oov_buckets == new.oov_buckets
            rows.append(len(there) + bucket if same else FRESH)
        return np.array(rows, np.int64)

    def _ids_moved(self, name: str) -> bool:
        """Whether an id of a cross's part no longer means what it meant."""
        feature = self._new.declaration.features[name]
        if isinstance(feature, Hashed):
            return False
        rows = self._block(feature)
        if rows is None:
            return True
        if is_looked_up(feature):
            known = len(self._old.constants.vocabularies[name])
            rows = rows[:known]
        return not np.array_equal(rows, np.arange(len(rows)))

    def _input_layer(self, premade: bool) -> tuple[int, np.ndarray] | None:
        """Returns the width there of the deep part's input, and the rows here."""
        starts, width = {}, 0
        for feature, size in self._layout(self._old, premade):
            starts[feature.name] = (width, feature, size)
            width += size
        rows = []
        for feature, size in self._layout(self._new, premade):
            start, old, old_size = starts.get(feature.name, (0, None, 0))
            block = self._part(old, old_size, feature, size)
            rows.append(np.where(block == FRESH, FRESH, block + start))
        return (width, np.concatenate(rows)) if rows else None

    def _part(
        self, old: Feature | None, old_size: int, new: Feature, size: int
    ) -> np.ndarray:
        """Returns the rows of a feature's part of the input, counted from its start."""
        block = None
        if type(old) is type(new):
            if not is_category(new) or new.embedding is not None:
                block = np.arange(size) if size == old_size else None
            elif old.embedding is None:
                block = self._block(new)
        return np.full([size], FRESH) if block is None else block

    def _layout(self, model: TrainedModel, premade: bool) -> list[tuple[Feature, int]]:
        """Returns the deep features and their widths, in the order of the input."""
        features = model.declaration.features
        deep = [f for f in features.values() if f.use in ("deep", "both")]
        if premade:
            deep.sort(key=lambda f: self._dense_name(model, f))
        else:
            deep.sort(key=lambda f: (not is_category(f)) + isinstance(f, Image))
        return [(f, self._width(model, f)) for f in deep]

    def _width(self, model: TrainedModel, feature: Feature) -> int:
        if isinstance(feature, Image):
            return feature.height * feature.width * feature.channels
        if not is_category(feature):
            return 1
        return feature.embedding or _ids(model, feature)

    def _dense_name(self, model: TrainedModel, feature: Feature) -> str:
        if getattr(feature, "shared", None) is not None:
            return f"{feature.shared}_shared_embedding"
        name = _column_name(model, feature)
        if not is_category(feature):
            return name
        return f"{name}_{'indicator' if feature.embedding is None else 'embedding'}"
