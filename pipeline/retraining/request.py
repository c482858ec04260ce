"""What a night is asked for, as digests: equal ones need not be done twice."""

from __future__ import annotations

import dataclasses
import functools
import os

from pipeline import files
from pipeline import manifest as manifests
from pipeline.invocation import Invocation

_PACKAGES = ("pipeline", "model_fns", "input_fns", "export")


@functools.cache
def code_version() -> str:
    """Returns a digest of the program's sources and the packages' versions."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    digests = {}
    for package in _PACKAGES:
        for place, _, names in os.walk(os.path.join(root, package)):
            for name in sorted(names):
                if name.endswith(".py"):
                    path = os.path.join(place, name)
                    digests[os.path.relpath(path, root)] = files.digest_file(path)
    versions = manifests.versions()
    versions.pop("revision")
    return files.digest_value([versions, digests])


def of_candidate(call: Invocation, dataset: str) -> str:
    """Returns a digest of all that makes a candidate, but for the champion.

    Args:
      call: The flags.
      dataset: Fingerprint of the window.
    """
    serving, training = call.serving, dataclasses.asdict(call.training)
    # What does not change the model.
    for name in ("on_change", "summary_steps", "keep_checkpoints"):
        training.pop(name)
    return files.digest_value(
        {
            "dataset": dataset,
            "code": code_version(),
            "training": training,
            "input": call.input.deciding(),
            "options": call.options.as_json(),
            "export": [
                serving.checkpoint,
                serving.verify_rows,
                dataclasses.asdict(call.exporting),
            ],
            "start": call.retraining.start,
        }
    )


def of_run(call: Invocation, candidate: str) -> str:
    """Returns a digest of what a run is asked for: a candidate, and how it is judged.

    Whether it is forced is no part of it: that is about a verdict which is there.
    """
    rules = dataclasses.asdict(call.retraining.blessing)
    for name in ("force", "reason"):
        rules.pop(name)
    return files.digest_value([candidate, rules])


def of_attempt(candidate: str, champion: str | None) -> str:
    """Returns the key of an attempt to replace a champion.

    Args:
      candidate: See `of_candidate`.
      champion: Digest of the champion's checkpoint; it may be what weights begin with.
    """
    return files.digest_value([candidate, champion])
