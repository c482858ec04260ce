"""tf.estimator as restored, compared with TensorFlow 2.15.1's by name and signature."""

from __future__ import annotations

import json
import pathlib

import surface

from pipeline.compat import tf

_FIXTURE = pathlib.Path(__file__).parent / "fixtures" / "surface_2_15.json"


def test_all_that_was_public_is_there_with_its_signature():
    expected = json.loads(_FIXTURE.read_text(encoding="utf-8"))
    found = surface.public(tf)
    assert len(expected) > 200
    assert not set(expected) - set(found)
    # Once asked for, what older releases had stands beside it.
    assert all(".BoostedTrees" in name for name in set(found) - set(expected))
    differing = {name for name in expected if found[name] != expected[name]}
    assert not differing
