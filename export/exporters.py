"""Exporters of train_and_evaluate: which checkpoints become versions while training.

TensorFlow's own are not used: its BestExporter forgets the best value at each restart
and reads event files by a pattern that a named EvalSpec does not match; its FinalExporter
is never called unless training reaches max_steps; both delete only versions whose names
have ten digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.compat import estimator

WriteVersion = Callable[[str, str], None]
"""Makes a checkpoint (second) the newest version in a directory (first), unless it is
that already, and removes old versions."""


class _VersionExporter(estimator.Exporter):
    """Writes a version after an evaluation.

    Args:
      write: Writes it; must be whole or absent after a kill.
    """

    def __init__(self, write: WriteVersion):
        self._write = write

    @property
    def name(self) -> str:
        """Name of the directory of versions below model_dir/export."""
        raise NotImplementedError

    def _choose(self, evaluated: str, is_the_final_export: bool) -> str | None:
        """Returns the checkpoint that should be the newest version, if any."""
        raise NotImplementedError

    def export(
        self,
        estimator,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, float],
        is_the_final_export: bool,
    ) -> None:
        del estimator, eval_result
        chosen = self._choose(checkpoint_path, is_the_final_export)
        if chosen is not None:
            self._write(export_path, chosen)


class LatestExporter(_VersionExporter):
    """Exports every evaluated checkpoint."""

    name = "latest"

    def _choose(self, evaluated: str, is_the_final_export: bool) -> str | None:
        del is_the_final_export
        return evaluated


class FinalExporter(_VersionExporter):
    """Exports the checkpoint with which training is complete, whatever completed it."""

    name = "final"

    def _choose(self, evaluated: str, is_the_final_export: bool) -> str | None:
        return evaluated if is_the_final_export else None


class BestExporter(_VersionExporter):
    """Exports the best checkpoint.

    What is best is kept with the checkpoint and not here, so that a restart, or a kill
    between evaluation and export, changes nothing.

    Args:
      find_best: Returns the path prefix of the best checkpoint so far, if there is one.
    """

    name = "best"

    def __init__(self, write: WriteVersion, find_best: Callable[[], str | None]):
        super().__init__(write)
        self._find_best = find_best

    def _choose(self, evaluated: str, is_the_final_export: bool) -> str | None:
        del evaluated, is_the_final_export
        return self._find_best()
