"""How input functions read; what is the same for every source of rows."""

from __future__ import annotations

import dataclasses
from typing import Any

from input_fns.shares import Shard
from pipeline.types import UserError


@dataclasses.dataclass(frozen=True)
class Reading:
    """How rows are brought in; of these only `files_at_once` decides their order.

    Attributes:
      files_at_once: Files that are read side by side.
      prefetch_batches: Batches made ready ahead of the model.
      threads: Threads for reading and parsing alone; None shares TensorFlow's.
      deterministic: False lets rows that are ready first overtake others: then the
        order is no longer the same each time, and a resumed run may see rows of the
        current epoch twice or not at all.
    """

    files_at_once: int = 4
    prefetch_batches: int = 2
    threads: int | None = None
    deterministic: bool = True


@dataclasses.dataclass(frozen=True)
class TrainInput:
    """How training rows are drawn.

    Attributes:
      batch_size: Rows in one step, over all replicas that train in step.
      shuffle_rows: Rows that are held and permuted at a time.
      seed: Decides the order; together with the row's position nothing else does.
      start_step: Steps already taken by earlier training, by this worker where each
        of several takes steps of its own.
      epochs: Passes over the rows after which the data end; None never ends.
      drop_remainder: Whether a last batch that is short is left out; there is none
        unless `epochs` is given.
      shard: The worker's share of the rows. A strategy that trains in step says it
        through the input_fn's `input_context`; others are given it here.
      replicas: Replicas that share a batch; also said by `input_context`.
      reading: How they are read.
    """

    batch_size: int
    shuffle_rows: int
    seed: int
    start_step: int = 0
    epochs: int | None = None
    drop_remainder: bool = False
    shard: Shard = Shard()
    replicas: int = 1
    reading: Reading = Reading()

    def placed(self, input_context: Any | None) -> TrainInput:
        """Returns the options of a worker that a strategy gave its place.

        Args:
          input_context: A tf.distribute.InputContext, or None without a strategy.
        """
        if input_context is None:
            return self
        shard = self.shard
        if input_context.num_input_pipelines > 1:
            shard = Shard(
                input_context.num_input_pipelines, input_context.input_pipeline_id
            )
        return dataclasses.replace(
            self, shard=shard, replicas=input_context.num_replicas_in_sync
        )

    @property
    def replica_rows(self) -> int:
        """Rows of a batch for one replica.

        Raises:
          UserError: The batch does not divide.
        """
        if self.batch_size % self.replicas:
            raise UserError(
                f"--batch_size={self.batch_size} does not divide among"
                f" {self.replicas} replicas: it counts the rows of a step over all"
                f" replicas, so give a multiple of {self.replicas}"
            )
        return self.batch_size // self.replicas

    @property
    def step_rows(self) -> int:
        """Rows that one step takes from this worker's share."""
        return self.replica_rows * max(1, self.replicas // self.shard.workers)
