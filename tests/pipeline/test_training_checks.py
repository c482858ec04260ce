"""May training begin or go on in a model directory; no TensorFlow is needed for it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from model_fns import hparams, registry
from pipeline import model_dir, training_checks
from pipeline.flags.input import InputFlags
from pipeline.flags.training import TrainingFlags
from pipeline.model_dir import TrainedModel, Training
from pipeline.types import (
    Bucketized,
    Column,
    ColumnType,
    Constants,
    Crossed,
    Date,
    DatePart,
    Declaration,
    Hashed,
    Image,
    Label,
    Numeric,
    Scale,
    Scaling,
    Split,
    UserError,
    Vocabulary,
)

FLAGS = TrainingFlags(
    model="wide_deep",
    hparams="hidden_units=[8,4]",
    batch_size=32,
    epochs=1.0,
    max_steps=None,
    seed=1,
    checkpoint_steps=None,
    keep_checkpoints=3,
    summary_steps=10,
    on_change="stop",
)


def asked(dataset: str = "d1", **changes) -> Training:
    return model_dir.asked_training(dataclasses.replace(FLAGS, **changes), dataset)


def planned(
    directory: Path,
    *changes: Numeric | Bucketized | Vocabulary | Hashed | Crossed | str,
) -> TrainedModel:
    """Returns a model whose features are changed: others added, or a name removed."""
    columns = (
        Column("x", ColumnType.FLOAT),
        Column("n", ColumnType.INT),
        Column("w", ColumnType.STRING),
        Column("y", ColumnType.STRING),
    )
    features = {
        "x": Numeric("x", "x"),
        "cut": Bucketized("cut", "n", quantiles=3),
        "w": Vocabulary("w", "w", embedding=4),
        "h": Hashed("h", "w", 10),
    }
    for change in changes:
        if isinstance(change, str):
            del features[change]
        else:
            features[change.name] = change
    declaration = Declaration(
        {c.name: c for c in columns},
        features,
        Split({"train": 0.8, "eval": 0.1, "test": 0.1}),
        Label("y", ("no", "yes")),
    )
    kinds = {name: type(f) for name, f in features.items()}
    constants = Constants(
        {n: Scaling(0.0, 1.0) for n, k in kinds.items() if k is Numeric},
        {n: (1.0, 2.0) for n, k in kinds.items() if k is Bucketized},
        {n: (b"a", b"b", b"c") for n, k in kinds.items() if k is Vocabulary},
    )
    return TrainedModel(str(directory), asked(), declaration, constants)


def with_constants(model: TrainedModel, **changes) -> TrainedModel:
    constants = dataclasses.replace(model.constants, **changes)
    return dataclasses.replace(model, constants=constants)


def with_label(model: TrainedModel, label: Label | None) -> TrainedModel:
    declaration = dataclasses.replace(model.declaration, label=label)
    return dataclasses.replace(model, declaration=declaration)


@pytest.fixture
def empty(tmp_path) -> Path:
    return tmp_path / "model"


@pytest.fixture
def trained(empty) -> Path:
    """A model directory as it is when there is a checkpoint."""
    model_dir.write(planned(empty))
    (empty / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-10"\n')
    return empty


def everything(directory: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


class TestDifferences:
    def test_none(self):
        assert model_dir.differences(asked(), asked()) == []

    def test_none_after_a_file(self, trained):
        read = model_dir.read_training(str(trained))
        assert model_dir.differences(read, asked()) == []

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"dataset": "d2"}, ["another dataset"]),
            ({"seed": 2}, ["seed 1 -> 2"]),
            ({"batch_size": 64}, ["batch_size 32 -> 64"]),
            (
                {"hparams": "hidden_units=[8]"},
                ["hidden_units [8, 4] -> [8]"],
            ),
            (
                {"hparams": "hidden_units=[8,4],dropout=0.5", "seed": 7},
                ["dropout 0.0 -> 0.5", "seed 1 -> 7"],
            ),
        ],
    )
    def test_each(self, changes, said):
        assert model_dir.differences(asked(), asked(**changes)) == said

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (InputFlags(cache="memory", prefetch_batches=9, input_threads=1), []),
            (InputFlags(input_fn="direct"), []),
            (InputFlags(shuffle_mb=1), ["shuffle_mb 64 -> 1"]),
            (
                InputFlags(shuffle_rows="9"),
                ["shuffle_mb 64 -> None", "shuffle_rows None -> 9"],
            ),
            (
                InputFlags(input_fn="synthetic"),
                ["input_fn rows of the dataset -> synthetic"],
            ),
        ],
    )
    def test_of_the_input_only_what_decides_the_rows(self, options, said):
        new = model_dir.asked_training(FLAGS, "d1", options)
        assert model_dir.differences(asked(), new) == said

    def test_another_model_lists_what_only_one_of_them_has(self):
        changed = model_dir.differences(asked(), asked(model="keras_wide_deep"))
        assert "model wide_deep -> keras_wide_deep" in changed
        assert "l2 None -> 0.0" in changed
        assert "wide_l1 0.0 -> None" in changed

    @pytest.mark.parametrize(
        "changes",
        [
            {"epochs": 5.0},
            {"max_steps": 500},
            {"checkpoint_steps": 7},
            {"keep_checkpoints": 1},
            {"summary_steps": 1},
            {"on_change": "restart"},
        ],
    )
    def test_what_decides_nothing(self, changes):
        assert model_dir.differences(asked(), asked(**changes)) == []


class TestModelDirectory:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"model": "keras_wide_deep", "hparams": "dropout=0.2,learning_rate=1e-4"},
            {"hparams": "hidden_units=[5],batch_norm=true,wide_l2=0.1"},
        ],
    )
    def test_what_is_written_is_opened(self, empty, changes):
        model = dataclasses.replace(planned(empty), training=asked(**changes))
        model_dir.write(model)
        (empty / "checkpoint").write_text("")
        opened = model_dir.open_model(str(empty))
        assert opened.declaration == model.declaration
        assert opened.constants == model.constants
        assert model_dir.differences(opened.training, model.training) == []
        kind = registry.find(model.training.model).hparams
        text = changes.get("hparams", FLAGS.hparams)
        expected = hparams.parse(text, kind)
        assert opened.settings() == expected

    def test_nothing_there(self, empty):
        assert model_dir.read_training(str(empty)) is None
        with pytest.raises(UserError, match="--model_dir: .* holds no trained model"):
            model_dir.open_model(str(empty))

    def test_no_checkpoint_yet(self, empty):
        model_dir.write(planned(empty))
        with pytest.raises(UserError, match="holds no trained model; run train first"):
            model_dir.open_model(str(empty))

    @pytest.mark.parametrize(
        "change",
        [
            lambda values: values.pop("seed"),
            lambda values: values.update(colour="red"),
            lambda values: values.update(hparams=None),
            lambda values: values.update(hparams=[1]),
        ],
    )
    def test_training_file_of_something_else(self, trained, change):
        path = trained / model_dir.TRAINING_FILE
        values = json.loads(path.read_text())
        change(values)
        path.write_text(json.dumps(values))
        with pytest.raises(UserError) as caught:
            model_dir.read_training(str(trained))
        assert str(caught.value) == (
            f"{path} is not of this pipeline; it needs exactly batch_size, dataset,"
            " hparams, input, model, seed"
        )

    @pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
    def test_damaged_training_file(self, trained, text):
        path = trained / model_dir.TRAINING_FILE
        path.write_text(text)
        with pytest.raises(UserError) as caught:
            model_dir.read_training(str(trained))
        assert str(path) in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1

    @pytest.mark.parametrize("values", [{"colour": 1}, {"dropout": 5.0}])
    def test_hyper_parameters_that_the_model_no_longer_takes(self, empty, values):
        training = dataclasses.replace(asked(), hparams=values)
        model = dataclasses.replace(planned(empty), training=training)
        with pytest.raises(UserError, match="no longer takes .*; train again"):
            model.settings()


class TestMustRestart:
    def check(self, directory, new=None, *, on_change="stop", model=None) -> bool:
        settings = dataclasses.replace(FLAGS, on_change=on_change)
        return training_checks.must_restart(
            new or asked(), settings, str(directory), model
        )

    @pytest.mark.parametrize("on_change", ["stop", "restart", "continue"])
    def test_nothing_there_or_nothing_changed(self, empty, on_change):
        assert not self.check(empty, on_change=on_change)
        model_dir.write(planned(empty))
        (empty / "checkpoint").write_text("")
        assert not self.check(empty, on_change=on_change)

    @pytest.mark.parametrize("on_change", ["stop", "restart", "continue"])
    def test_nothing_is_lost_before_the_first_checkpoint(self, empty, on_change):
        model_dir.write(planned(empty))
        assert not self.check(empty, asked(seed=9), on_change=on_change)

    @pytest.mark.parametrize("on_change", ["stop", "restart", "continue"])
    def test_checkpoints_of_something_else(self, empty, on_change):
        empty.mkdir()
        (empty / "checkpoint").write_text("")
        with pytest.raises(UserError, match="that this pipeline did not write"):
            self.check(empty, on_change=on_change)

    def test_stop(self, trained):
        before = everything(trained)
        with pytest.raises(UserError) as caught:
            self.check(trained, asked("d2", seed=2))
        message = str(caught.value)
        assert "other settings: another dataset, seed 1 -> 2. Choose another" in message
        for way_out in ("--model_dir", "--on_change=restart", "--on_change=continue"):
            assert way_out in message
        assert everything(trained) == before

    def test_restart(self, trained):
        assert self.check(trained, asked(seed=2), on_change="restart")
        assert self.check(trained, asked(model="keras_wide_deep"), on_change="restart")

    def test_continue(self, trained):
        new = asked("d2", seed=2, hparams="hidden_units=[8,4],dropout=0.5")
        assert not self.check(trained, new, on_change="continue")

    def test_continue_as_another_model(self, trained):
        new = asked(model="keras_wide_deep")
        with pytest.raises(UserError, match="holds a wide_deep, which cannot become"):
            self.check(trained, new, on_change="continue")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("hidden_units=[8]", "cannot take hidden_units [8, 4] -> [8];"),
            (
                "hidden_units=[8,4],batch_norm=true,dropout=0.5",
                "cannot take batch_norm False -> True;",
            ),
        ],
    )
    def test_continue_with_other_variables(self, trained, text, said):
        with pytest.raises(UserError) as caught:
            self.check(trained, asked(hparams=text), on_change="continue")
        assert said in str(caught.value)
        assert "--on_change=restart" in str(caught.value)

    def test_stop_lists_the_features_that_are_others(self, trained):
        before = everything(trained)
        new_x = Bucketized("x", "x", quantiles=3)
        model = planned(trained, Numeric("n", "n"), "h", new_x)
        with pytest.raises(UserError) as caught:
            self.check(trained, asked("d2"), model=model)
        assert (
            "another dataset, added n, removed h, changed x (numeric for deep ->"
            " bucketized for wide, 2 boundaries). Choose"
        ) in str(caught.value)
        assert everything(trained) == before


ADDED = Numeric("n", "n")


class TestSameStructure:
    def error(self, model: TrainedModel) -> str:
        before = everything(Path(model.directory))
        with pytest.raises(UserError) as caught:
            training_checks.check_same_structure(model)
        assert everything(Path(model.directory)) == before
        message = str(caught.value)
        assert "--on_change=restart or another --model_dir" in message
        return message

    def test_same(self, trained):
        model = planned(trained)
        assert training_checks.check_same_structure(model) == model

    def test_no_checkpoint(self, empty):
        model_dir.write(planned(empty))
        model = planned(empty, ADDED, "h")
        assert training_checks.check_same_structure(model) is model

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ([ADDED], "(added n)"),
            ([ADDED, Numeric("b", "n")], "(added b, n)"),
            (["h"], "(removed h)"),
            (["x", "h"], "(removed h, x)"),
            (
                [ADDED, "h", Vocabulary("w", "w", embedding=5)],
                "(added n; removed h; changed w (vocabulary for both, embedding 4,"
                " oov_buckets 1, 3 terms -> vocabulary for both, embedding 5,"
                " oov_buckets 1, 3 terms))",
            ),
            (
                [Bucketized("x", "x", quantiles=3)],
                "changed x (numeric for deep -> bucketized for wide, 2 boundaries)",
            ),
            (
                [Hashed("h", "w", 11)],
                "changed h (hashed for both, buckets 10 -> hashed for both, buckets 11)",
            ),
            ([Vocabulary("w", "w", None, 1, 2, 4)], "oov_buckets 2"),
            ([Numeric("x", "x", use="both")], "numeric for deep -> numeric for both"),
            (
                [Crossed("c", ("cut", "w"), 9)],
                "(added c)",
            ),
            (
                [Hashed("h", "w", 10, weights="x")],
                "buckets 10 -> hashed for both, buckets 10, weights x",
            ),
            (
                [Vocabulary("w", "w", embedding=4, shared="g")],
                "oov_buckets 1, 3 terms -> vocabulary for both, embedding 4,"
                " oov_buckets 1, shared g, 3 terms",
            ),
            ([Date("h", "w", DatePart.MONTH)], "-> date for both, part month)"),
            ([Image("h", "w", 2, 3)], "image for deep, height 2, width 3, channels 3"),
        ],
    )
    def test_features(self, trained, changes, said):
        assert said in self.error(planned(trained, *changes))

    def test_a_vocabulary_that_grew(self, trained):
        model = with_constants(
            planned(trained), vocabularies={"w": tuple(b"a b c d e".split())}
        )
        assert "3 terms -> vocabulary" in self.error(model)
        assert ", 5 terms)" in self.error(model)

    def test_other_terms_though_as_many(self, trained):
        model = with_constants(planned(trained), vocabularies={"w": (b"a", b"b", b"d")})
        assert "changed w (other terms, though as many)" in self.error(model)

    def test_terms_in_another_order_keep_that_of_the_checkpoint(self, trained):
        model = with_constants(
            planned(trained),
            vocabularies={"w": (b"c", b"a", b"b")},
            scalings={"x": Scaling(5.0, 2.0)},
        )
        checked = training_checks.check_same_structure(model)
        assert checked.constants.vocabularies == {"w": (b"a", b"b", b"c")}
        assert checked.constants.scalings == {"x": Scaling(5.0, 2.0)}

    def test_other_boundaries(self, trained):
        model = planned(trained)
        moved = with_constants(model, boundaries={"cut": (1.0, 2.5)})
        training_checks.check_same_structure(moved)
        more = with_constants(model, boundaries={"cut": (1.0, 2.0, 3.0)})
        assert "2 boundaries -> bucketized for wide, 3 bound" in self.error(more)

    @pytest.mark.parametrize(
        ("label", "said"),
        [
            (Label("y", ("yes", "no")), "classes no, yes -> classes yes, no"),
            (Label("y", ("no", "yes", "?")), "classes no, yes -> classes no, yes, ?"),
            (Label("x"), "classes no, yes -> regression"),
        ],
    )
    def test_label(self, trained, label, said):
        assert f"the label ({said})" in self.error(with_label(planned(trained), label))

    def test_what_has_no_effect_on_the_variables(self, trained):
        changes = [
            Numeric("x", "x", Scale.LOG, clip=(0.0, 1.0)),
            Vocabulary("w", "w", 3, 2, 1, 4, separator="|"),
        ]
        training_checks.check_same_structure(planned(trained, *changes))
