"""The flags of a training, as the train command reads them."""

from __future__ import annotations


def training(*given: str):
    """Returns the TrainingFlags of a command line.

    Args:
      given: Flags, e.g. "--model=dcn"; the others have their defaults.
    """
    from pipeline.flags import evaluation, training, warm_start, watching

    values = training.flags.FlagValues()
    for topic in (training, evaluation, warm_start, watching):
        topic.define(values)
    values(["benchmark", *given])
    return training.read(values)
