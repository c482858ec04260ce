"""A small real job for tests: a CSV file through preprocess, train and export."""

from __future__ import annotations

import csv
import dataclasses
import random
from pathlib import Path

from pipeline import export_model, train, train_plan
from pipeline.console import Console
from pipeline.dataset import Dataset, open_dataset
from pipeline.export_model import ExportResult
from pipeline.flags.data import DataFlags
from pipeline.flags.exporting import ExportFlags
from pipeline.flags.input import DEFAULT as DEFAULT_INPUT
from pipeline.flags.input import InputFlags
from pipeline.flags.serving import ServingFlags
from pipeline.flags.training import TrainingFlags
from pipeline.model_dir import TrainedModel, open_model
from pipeline.preprocess import stage

QUIET = Console(-1)
MODELS = ("wide_deep", "keras_wide_deep")
TASKS = ("binary", "multi_class", "regression")
ROWS = 320
COLOUR = "colour/größe (cm)"
"""A column name as data has it, with all that is no identifier."""
HEADER = (
    "id",
    COLOUR,
    "age",
    "score",
    "city",
    "kind",
    "tag",
    "bought",
    "grade",
    "price",
)
_LABELS = {
    "binary": "label: {column: bought, classes: [nein, ja]}",
    "multi_class": 'label: {column: grade, classes: ["1", "2", "3"]}\nweight: score',
    "regression": "label: {column: price}",
    "none": "",
}
_DECLARATION = f"""
split: {{fractions: {{train: 0.5, eval: 0.2, test: 0.3}}, key: [id]}}
columns:
  id: {{type: int}}
  "{COLOUR}": {{type: string, missing: ["?"], default: keine}}
  age: {{type: int}}
  score: {{type: float, missing: [NA], default: 0.5}}
  city: {{type: string}}
  kind: {{type: int, default: 1}}
  tag: {{type: string, default: none}}
  bought: {{type: string}}
  grade: {{type: int}}
  price: {{type: float}}
features:
  age: {{kind: numeric, scale: log}}
  score: {{kind: numeric, use: both}}
  colour: {{kind: vocabulary, column: "{COLOUR}"}}
  city: {{kind: vocabulary, min_count: 3, embedding: 3, oov_buckets: 2}}
  kind: {{kind: vocabulary, top_k: 2}}
  tag: {{kind: hashed, buckets: 7}}
  city_hash: {{kind: hashed, column: city, buckets: 7}}
  age_bucket: {{kind: bucketized, column: age, quantiles: 3, use: both}}
  colour_x_age: {{kind: crossed, of: [colour, age_bucket], buckets: 50}}
"""


@dataclasses.dataclass(frozen=True)
class Job:
    """Directories of a job whose stages have run.

    Attributes:
      root: Holds everything.
      input: The CSV file.
    """

    root: Path
    input: Path

    @property
    def dataset_dir(self) -> Path:
        return self.root / "dataset"

    def model_dir(self, model: str) -> Path:
        return self.root / model / "model"

    def export_dir(self, model: str) -> Path:
        return self.root / model / "export"

    def dataset(self) -> Dataset:
        return open_dataset(str(self.dataset_dir))

    def model(self, model: str) -> TrainedModel:
        return open_model(str(self.model_dir(model)))


def rows() -> list[list[str]]:
    """Returns rows with missing values, and with values too rare to be known."""
    draw = random.Random(5)
    found = []
    for i in range(ROWS):
        rare_city = i % 11 == 0
        found.append(
            [
                i,
                draw.choice(["rot", "blau", "grün", "", " ? "]),
                draw.choice([-1, 0, 20, 35, 60]),
                draw.choice(["", "NA", "0.25", f"{draw.random():.3f}"]),
                f"Dorf {i}" if rare_city else draw.choice(["Köln", "Ulm", "北京"]),
                draw.choice(["", -1, 1, 1, 2, 2, 7]),
                draw.choice(["", "none", f"t{draw.randrange(50)}"]),
                draw.choice(["ja", "nein"]),
                draw.choice([1, 2, 3]),
                f"{draw.gauss(3, 2):.4f}",
            ]
        )
    return found


def write_csv(path: Path, header, lines) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([header, *lines])
    return path


def make_job(root: Path, task: str) -> Job:
    """Runs preprocess on the rows, with the label of a task."""
    root.mkdir(parents=True, exist_ok=True)
    job = Job(root, write_csv(root / "rows.csv", HEADER, rows()))
    features = root / "features.yaml"
    features.write_text(f"{_LABELS[task]}\n{_DECLARATION}", encoding="utf-8")
    settings = data_flags(job.input, features)
    stage.run(str(job.dataset_dir), stage.plan(settings), QUIET)
    return job


def data_flags(path: Path, features: Path) -> DataFlags:
    return DataFlags(
        input=str(path),
        features=str(features),
        label=None,
        max_reject_fraction=0.0,
        shard_mb=64,
        beam_options=(),
    )


def training_flags(model: str, **changes) -> TrainingFlags:
    values = {
        "model": model,
        "hparams": "hidden_units=[8]",
        "batch_size": 32,
        "epochs": 1.0,
        "max_steps": 4,
        "seed": 1,
        "checkpoint_steps": None,
        "keep_checkpoints": 3,
        "summary_steps": 100,
        "on_change": "stop",
    }
    return TrainingFlags(**{**values, **changes})


def run_training(
    directory: Path,
    settings: TrainingFlags,
    dataset: Dataset,
    console=QUIET,
    reading: InputFlags = DEFAULT_INPUT,
) -> train.TrainResult:
    plan = train_plan.plan(str(directory), settings, dataset, reading)
    return train.run(plan, dataset, "", console)


def train_model(job: Job, model: str, **changes) -> TrainedModel:
    settings = training_flags(model, **changes)
    run_training(job.model_dir(model), settings, job.dataset())
    return job.model(model)


def serving_flags(**changes) -> ServingFlags:
    values = {
        "eval_split": "test",
        "verify_rows": 0,
        "keep_versions": 3,
        "version": None,
    }
    return ServingFlags(**{**values, **changes})


def export(
    job: Job, model: str, directory: Path | None = None, **exporting
) -> ExportResult:
    return export_model.run(
        str(directory or job.export_dir(model)),
        job.model(model),
        job.dataset(),
        serving_flags(),
        QUIET,
        ExportFlags(**exporting),
    )
