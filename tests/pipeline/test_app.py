"""The command line, as a program: help, and one line for every mistake."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline import app
from pipeline.commands import COMMANDS
from pipeline.types import ExitCode

ROOT = Path(__file__).parents[2]
SECONDS = 5
FEATURES = """
label: {column: y, classes: ["no", "yes"]}
columns:
  x: {type: float}
  y: {type: string}
features:
  x: {kind: numeric}
"""
DATA = "x,y\n" + "1.5,no\n2.5,yes\n" * 20


def run(directory: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    """Runs the program in a directory, with TensorFlow nowhere to be waited for."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    return subprocess.run(
        [sys.executable, "-m", "pipeline", *arguments],
        cwd=directory,
        env=environment,
        timeout=60,
        **{"capture_output": True, "text": True, **options},
    )


@pytest.fixture
def place(tmp_path) -> Path:
    """A directory with data, declarations and flagfiles, right and wrong."""
    texts = {
        "data.csv": DATA,
        "empty.csv": "",
        "blank.csv": "\n\n",
        "header.csv": "x,y\n",
        "lacking.csv": "x,z\n1,no\n",
        "features.yaml": FEATURES,
        "wrong.yaml": "columns:\n  x: {type: number}\n",
        "unlabelled.yaml": "columns: {x: {type: float}}\n"
        "features: {x: {kind: numeric}}\n",
        "good.flags": "# A comment.\n--batch_size=0\n--epochs=2\n",
        "outer.flags": "--epochs=3\n--flagfile=good.flags\n",
        "self.flags": "--flagfile=self.flags\n",
        "ring1.flags": "--flagfile=ring2.flags\n",
        "ring2.flags": "--flagfile=ring1.flags\n",
        "lost.flags": "--flagfile=none.flags\n",
        "typo.flags": "--epoch=3\n",
        "word.flags": "--epochs=3\nfoo\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "binary.flags").write_bytes(b"\xff\xfe--epochs=3")
    (tmp_path / "directory").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    return tmp_path


def everything(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_overview(tmp_path, arguments):
    done = run(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python -m pipeline COMMAND --flags\n")
    for name, command in COMMANDS.items():
        assert re.search(
            rf"^  {name} +{re.escape(command.summary)}$", done.stdout, re.M
        )
    assert everything(tmp_path) == {}


FLAGS = {
    "paths": "work_dir dataset_dir model_dir evaluation_dir export_dir",
    "data": "input features label max_reject_fraction"
    " input_format delimiter columns run_date skip_bad_records",
    "writing": "shard_mb record_form",
    "workers": "beam_option beam_stall_seconds direct_num_workers",
    "predicting": "output_dir output_format rows_per_file key_columns signature",
    "input": "input_fn shuffle_mb shuffle_rows read_files_at_once cache"
    " prefetch_batches input_threads deterministic repeat drop_remainder direct_mb",
    "training": "model hparams batch_size epochs max_steps seed"
    " checkpoint_steps checkpoint_secs keep_checkpoints keep_checkpoint_every_hours"
    " max_train_seconds steps_per_run summary_steps on_change",
    "evaluation": "eval_steps best_metric best_mode exporters keep_exports"
    " early_stopping_metric early_stopping_mode early_stopping_patience"
    " early_stopping_patience_steps early_stopping_min_delta",
    "warm_start": "warm_start_from warm_start_vars warm_start_map",
    "watching": "curves stall_seconds profile_steps",
    "monitoring": "monitor_host monitor_port",
    "tuning": "search search_method trials prune tune_dir",
    "slicing": "slices slices_min_rows plots",
    "serving": "eval_split verify_rows keep_versions version checkpoint"
    " eval_only_once eval_timeout_secs",
    "exporting": "forward_features formats export_embeddings",
    "serve": "host port model_name max_request_mb poll_seconds",
    "metrics": "metrics",
    "compute": "mixed_precision xla",
    "schema": "schema",
    "checks": "against drift_threshold row_factor",
    "showing": "format rows split",
    "output": "output",
    "cluster": "strategy communication chief_hosts worker_hosts ps_hosts"
    " evaluator_hosts task_type task_index wait_seconds lost_seconds num_gpus"
    " visible_devices memory_growth memory_fraction soft_placement"
    " log_device_placement inter_op_threads intra_op_threads logical_cpus",
    "launcher": "chief workers ps evaluator restarts end_seconds",
    "retraining": "window_days eval_days test_days allow_missing_days skip_days gates"
    " min_train_rows start_from keep_runs lock_stale_secs",
    "blessing": "bless_metric bless_thresholds bless_max_drop bless_interval"
    " bless_confidence bless_samples bless_slices slice_max_drop slice_min_rows"
    " bless_max_miscalibration min_test_rows force_bless",
    "publishing": "serving_dir reason",
    "notices": "webhook_command prometheus_file",
    "history": "to last",
    "general": "help flagfile progress_seconds verbosity",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(tmp_path, name):
    done = run(tmp_path, name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    listed = re.findall(r"^  --(\w+)  \S", done.stdout, re.M)
    topics = COMMANDS[name].topics
    assert sorted(listed) == sorted(f for t in topics for f in FLAGS[t].split())
    assert COMMANDS[name].example in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert everything(tmp_path) == {}


def test_help_says_defaults_and_ignores_other_needs(tmp_path):
    done = run(tmp_path, "train", "-h", "word")
    assert done.returncode == 0
    said = " ".join(done.stdout.split())
    assert "(default: 512)" in said
    assert "(default: stop)" in said


LABEL = "--label=y"
INPUT = "--input=data.csv"
DECLARED = "--features=features.yaml"
# The command line, and what its error line must hold.
MISTAKES = {
    "unknown command": ("trian", "unknown command 'trian'; did you mean train? there"),
    "unlike any command": ("xyzzy", "unknown command 'xyzzy'; there are: run, pre"),
    "flag first": ("--epochs=3 train", "give the command before --epochs=3"),
    "unknown flag": ("train --epoch=3", "--epoch is unknown; did you mean --epochs?"),
    "unlike any flag": ("train --xyzzy", "--xyzzy is unknown (see python -m pipeline"),
    "no suggestion from elsewhere": ("preprocess --epoch=3", "--epoch is unknown (see"),
    "flag of another": (
        "train --shard_mb=5",
        "--shard_mb has no effect on train; it belongs to run, preprocess",
    ),
    "no-flag of another": ("show x --noinput", "--noinput is unknown"),
    "flag of another apart": ("evaluate --shard_mb 5", "--shard_mb has no effect on"),
    "epochs nan": ("train --epochs=nan", "--epochs=nan: "),
    "epochs inf": ("train --epochs=inf", "--epochs=inf: "),
    "epochs text": ("train --epochs=abc", "--epochs=abc: "),
    "epochs 0": ("train --epochs=0", "--epochs=0"),
    "epochs empty": ("train --epochs=", "--epochs="),
    "epochs without value": ("train --epochs", "--epochs"),
    "batch size 0": ("train --batch_size=0", "--batch_size=0: "),
    "batch size 1.5": ("train --batch_size=1.5", "--batch_size=1.5: "),
    "batch size 2^40": ("train --batch_size=1099511627776", "--batch_size=10995"),
    "shuffle 10^30": (f"train --shuffle_rows=1{'0' * 30}", "--shuffle_rows=1000"),
    "steps 10^30": (f"train --max_steps=1{'0' * 30}", "--max_steps=1000"),
    "seed": ("train --seed=-1", "--seed=-1: "),
    "on_change": ("train --on_change=go", "--on_change=go: value should be one of"),
    "verbosity": ("train --verbosity=2", "--verbosity=2: "),
    "rejects": ("preprocess --max_reject_fraction=nan", "--max_reject_fraction=nan: "),
    "shards": ("preprocess --shard_mb=0", "--shard_mb=0: "),
    "split": ("evaluate --eval_split=all", "--eval_split=all: "),
    "version": (f"export --keep_versions=1{'0' * 30}", "--keep_versions=1000"),
    "bool": ("train --help=maybe", "--help=maybe"),
    "empty work_dir": ("train --work_dir=", "--work_dir=: needs a directory"),
    "blank model_dir": ("train --model_dir=%20", "--model_dir="),
    "flagfile missing": ("train --flagfile=none", "--flagfile: cannot read it: "),
    "flagfile empty": ("train --flagfile=", "--flagfile is empty"),
    "flagfile without value": ("train --flagfile", "--flagfile"),
    "flagfile is a directory": ("train --flagfile=directory", "--flagfile: cannot"),
    "flagfile binary": ("train --flagfile=binary.flags", "--flagfile: it is not UTF-8"),
    "flagfile typo": ("train --flagfile=typo.flags", "--epoch is unknown; did you"),
    "flagfile word": ("train --flagfile=word.flags", "'foo' is not a flag"),
    "flagfile lost": ("train --flagfile=lost.flags", "--flagfile: cannot read it: "),
    "flagfile in itself": ("train --flagfile=self.flags", "--flagfile: a file names"),
    "flagfile in a ring": ("train --flagfile=ring1.flags", "--flagfile: a file names"),
    "flagfile wrong": ("train --flagfile=good.flags", "--batch_size=0: "),
    "flagfile nested": ("train --flagfile=outer.flags", "--batch_size=0: "),
    "flagfile wins over earlier": (
        "train --batch_size=5 --flagfile=good.flags",
        "--batch_size=0: ",
    ),
    "stray word": (
        "train epochs=3",
        "'epochs=3' is not a flag, and train takes flags only; did you mean"
        " --FLAG=epochs=3?",
    ),
    "stray word behind --": ("train -- --epochs=3", "'--epochs=3' is not a flag"),
    "pattern opened by the shell": ("preprocess --input data.csv b.csv", "'b.csv' is"),
    "two cadences": (
        "train --checkpoint_steps=1 --checkpoint_secs=1",
        "give either --checkpoint_steps or --checkpoint_secs",
    ),
    "exporter": ("train --exporters=best,last", "takes best, latest, final or none"),
    "checkpoint": ("export --checkpoint=old", "must be latest, best or a step"),
    "warm start names": ("train --warm_start_map=a", "must be of the form OLD=NEW"),
    "warm start pattern": ("train --warm_start_vars=(", "must be a regular expression"),
    "warm start alone": ("train --warm_start_vars=x", "need --warm_start_from"),
    "direction": ("train --best_metric=gain", "--best_mode=min or --best_mode=max is"),
    "direction of stopping": (
        "train --early_stopping_metric=gain",
        "--early_stopping_mode=min or --early_stopping_mode=max is needed",
    ),
    "unknown model": ("train --model=wide", "--model=wide is unknown"),
    "no model": ("train --model=", "--model= is unknown; there are: linear, "),
    "hparams": ("train --hparams=depth=3", "--hparams: 'depth' is unknown"),
    "hparams value": ("train --hparams=dropout=2", "--hparams: dropout must be"),
    "hparams date": ("train --hparams=dropout=2020-13-45", "--hparams: dropout=2020"),
    "hparams of the other model": (
        f"run {INPUT} {DECLARED} --model=keras_wide_deep --hparams=wide_l1=1",
        "--hparams: 'wide_l1' is unknown to this model",
    ),
    "no dataset": ("train", "--dataset_dir: "),
    "dataset without manifest": ("train --dataset_dir=mine", "--dataset_dir: "),
    "dataset is a file": ("train --dataset_dir=data.csv", "--dataset_dir: "),
    "no trained model": ("evaluate", "--model_dir: "),
    "no model to export": ("export", "--model_dir: "),
    "no input": ("preprocess", "--input is needed"),
    "no input for run": ("run", "--input is needed"),
    "empty input": ("preprocess --input=", "--input is needed"),
    "nothing matches": ("preprocess --input=*.cvs", "--input: nothing matches '*.cvs'"),
    "part matches nothing": (
        f"run {INPUT},n.csv {DECLARED}",
        "--input: nothing matches",
    ),
    "input is a directory": ("run --input=directory", "--input: directory is a dir"),
    "empty CSV": (f"preprocess --input=empty.csv {DECLARED}", "--input: empty.csv is"),
    "blank CSV": (f"preprocess --input=blank.csv {DECLARED}", "--input: blank.csv is"),
    "lacking column": (
        f"preprocess --input=lacking.csv {DECLARED}",
        "--input: lacking.csv has no column y, which features.yaml declares; it has x,",
    ),
    "features missing": (
        f"run {INPUT} --features=none",
        "--features: there is no file",
    ),
    "features is a directory": (f"run {INPUT} --features=mine", "--features: there is"),
    "features wrong": (
        f"run {INPUT} --features=wrong.yaml",
        "wrong.yaml:1:1: needs features",
    ),
    "features without label": (
        f"run {INPUT} --features=unlabelled.yaml",
        "unlabelled.yaml declares no label",
    ),
    "label and features": (f"run {INPUT} {DECLARED} {LABEL}", "--label is for"),
    "unknown label": (f"run {INPUT} --label=z", "--label=z: "),
    "no label": (f"run {INPUT}", "--label=COLUMN"),
    "dataset would replace files": (
        f"preprocess {INPUT} {DECLARED} --dataset_dir=mine",
        "--dataset_dir: ",
    ),
    "run would replace files": (
        f"run {INPUT} {DECLARED} --dataset_dir=mine",
        "--dataset_dir: ",
    ),
    "evaluation would replace files": (
        f"run {INPUT} {DECLARED} --evaluation_dir=mine",
        "--evaluation_dir: ",
    ),
    "dataset in place of a file": (
        f"run {INPUT} {DECLARED} --dataset_dir=data.csv",
        "--dataset_dir: ",
    ),
    "predict without input": ("predict --output=o", "--input is needed"),
    "predict without output": (f"predict {INPUT}", "--output is needed"),
    "predict to nowhere": (f"predict {INPUT} --output=no/o", "--output: there is no"),
    "predict to a directory": (f"predict {INPUT} --output=mine", "--output: mine is a"),
    "predict over its input": (f"predict {INPUT} --output=./data.csv", "--output: "),
    "predict to both": (
        f"predict {INPUT} --output=o --output_dir=d",
        "--output and --output_dir: give one",
    ),
    "predict over files": (
        f"predict {INPUT} --output_dir=mine",
        "mine holds files that",
    ),
    "predict to a record": (
        f"predict {INPUT} --output=o --output_format=xml",
        "--output_format=xml: ",
    ),
    "predict without export": (f"predict {INPUT} --output=o", "--export_dir: "),
    "show nothing": ("show", "show needs one directory"),
    "show two": ("show a b", "show needs one directory"),
    "show what is not there": ("show none", "there is no directory none"),
    "show what is no result": ("show mine", "mine holds nothing that a stage finished"),
    "show behind --": ("show -- --input", "there is no directory --input"),
    "work_dir below a file": (
        f"preprocess {INPUT} {DECLARED} --work_dir=data.csv/x",
        "cannot write in ",
    ),
}


# These run as a program of their own, the others in this process, which is faster.
AS_PROGRAM = """unknown command|unknown flag|flag of another|epochs nan|epochs text|
batch size 0|flagfile missing|flagfile in itself|flagfile nested|flagfile binary|
stray word|unknown model|hparams|no dataset|no trained model|no input|nothing matches|
empty CSV|lacking column|features missing|features wrong|no label|
dataset would replace files|work_dir below a file|predict without export|show nothing
""".replace("\n", "").split("|")


def _words(line: str) -> list[str]:
    return [word.replace("%20", " ") for word in line.split()]


def _check_message(stdout: str, stderr: str, said: str) -> None:
    assert stdout == ""
    assert "Traceback" not in stderr
    (message,) = stderr.splitlines()
    assert message.startswith("error: ")
    assert said in message


@pytest.mark.parametrize("name", AS_PROGRAM)
def test_a_mistake_is_one_line_at_once_and_writes_nothing(place, name):
    line, said = MISTAKES[name]
    before = everything(place)
    started = time.monotonic()
    done = run(place, *_words(line))
    seconds = time.monotonic() - started
    assert done.returncode == ExitCode.USER_ERROR, done.stderr
    _check_message(done.stdout, done.stderr, said)
    assert seconds < SECONDS
    assert everything(place) == before


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in AS_PROGRAM])
def test_further_mistakes(place, name, monkeypatch, capsys):
    line, said = MISTAKES[name]
    before = everything(place)
    monkeypatch.chdir(place)
    # It would silence the warnings and logs of all tests.
    monkeypatch.setattr(app.environment, "set_verbosity", lambda verbosity: None)
    assert app.main(_words(line)) == ExitCode.USER_ERROR
    _check_message(*capsys.readouterr(), said)
    assert everything(place) == before


def test_inputs_inside_the_dataset_directory(place):
    dataset = place / "dataset"
    dataset.mkdir()
    (dataset / "data.csv").write_text(DATA)
    manifest = '{"stage": "preprocess", "fingerprint": "", "inputs": {}, "results": {},'
    manifest += ' "configuration": {}, "versions": {}, "finished": "", "seconds": 1}'
    (dataset / "manifest.json").write_text(manifest)
    before = everything(place)
    given = ("--input=dataset/data.csv", DECLARED, "--dataset_dir=dataset")
    done = run(place, "preprocess", *given)
    assert done.returncode == ExitCode.USER_ERROR
    assert "dataset/data.csv, which is an --input" in done.stderr
    assert everything(place) == before


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("--flagfile=good.flags --batch_size=7", 7),
        ("--flagfile=outer.flags --batch_size=7", 7),
        ("--batch_size=7", 7),
        ("--batch_size 7", 7),
        ("--batch_size=5 --batch_size=7", 7),
    ],
)
def test_the_last_of_a_flag_wins(place, monkeypatch, line, value):
    monkeypatch.chdir(place)
    values, topic_of = app._define_flags()
    (place / "good.flags").write_text("--batch_size=6\n--epochs=2\n--input=x\n")
    app._parse("train", line.split(), values, topic_of)
    assert values.batch_size == value


def test_a_flagfile_may_serve_several_commands(place):
    text = f"{INPUT}\n--epochs=3\n--verify_rows=5\n--shard_mb=5\n"
    (place / "all.flags").write_text(text)
    done = run(place, "train", "--flagfile=all.flags", "--input_fn=dataset")
    assert done.stderr.startswith("error: --dataset_dir: ")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_flagfile_of_a_command_repeats_it(place, name, monkeypatch):
    monkeypatch.chdir(place)
    given = {
        "paths": ["--work_dir=some where", "--model_dir=a,b"],
        "data": ["--input=a b.csv,c.csv", "--columns=a,b"],
        "writing": ["--shard_mb=5"],
        "workers": ["--beam_option=--x=1", "--beam_option=--y"],
        "predicting": ["--output_dir=some where", "--key_columns=id,b"],
        "input": ["--shuffle_rows=all", "--norepeat", "--cache=some where"],
        "training": ["--hparams=hidden_units=[64, 32],dropout=0.1", "--epochs=0.5"],
        "evaluation": ["--eval_steps=7", "--best_metric=auc"],
        "warm_start": ["--warm_start_from=a b"],
        "watching": ["--nocurves", "--profile_steps=3,5"],
        "monitoring": ["--monitor_port=6006"],
        "tuning": ["--search=a=1..2; b=x|y", "--noprune"],
        "slicing": ["--slices=a b,c", "--plots"],
        "metrics": ["--metrics=f1@0.3,auc"],
        "compute": ["--xla", "--mixed_precision"],
        "serving": ["--verify_rows=0", "--eval_split=eval"],
        "serve": ["--port=0", "--model_name=a-b", "--poll_seconds=0.5"],
        "exporting": ["--formats=onnx,litert", "--export_embeddings"],
        "schema": ["--schema=a schema.pbtxt"],
        "checks": ["--against=d", "--drift_threshold=0.25"],
        "showing": ["--format=html", "--rows=3"],
        "output": ["--output=some where"],
        "cluster": ["--strategy=mirrored", "--logical_cpus=2", "--ps_hosts=a:1,b:1"],
        "launcher": ["--workers=3", "--nochief"],
        "retraining": ["--skip_days=2013-01-02,2013-01-03", "--gates=drift=stop"],
        "blessing": ["--bless_thresholds=auc>=0.6,average_loss<=1", "--force_bless"],
        "publishing": ["--serving_dir=some where", "--reason=it's needed"],
        "notices": ["--webhook_command=cat -"],
        "history": ["--to=3", "--last=4"],
        "general": ["--verbosity=-1"],
    }
    arguments = [flag for topic in COMMANDS[name].topics for flag in given[topic]]
    values, topic_of = app._define_flags()
    app._parse(name, arguments, values, topic_of)
    (place / "again.flags").write_text(app._as_flagfile(name, values, topic_of))
    again, _ = app._define_flags()
    app._parse(name, ["--flagfile=again.flags"], again, topic_of)
    for flag, topic in topic_of.items():
        if topic != "general":
            assert again[flag].value == values[flag].value, flag


def test_every_command_has_a_whole_entry():
    for name, command in COMMANDS.items():
        assert command.example.startswith(f"{name} ")
        assert set(command.topics) <= set(FLAGS)
        assert command.topics[-1] == "general"
        assert (command.run is None) != (command.execute is None)
        if command.execute:
            continue
        values, topic_of = app._define_flags()
        words = re.sub("'", "", command.example).split()[1:]
        app._parse(name, words, values, topic_of)


LIGHT = """
import contextlib, io, sys
from pipeline import app
def no_heavy_module():
    heavy = ("tensorflow", "tf_keras", "keras", "tensorflow_estimator", "apache_beam")
    heavy += ("tensorflow_metadata", "tensorflow_datasets")
    return [m for m in sys.modules if m.split(".")[0] in heavy]
assert no_heavy_module() == [], "import"
for arguments in {lines!r}:
    with contextlib.redirect_stdout(io.StringIO()):
        with contextlib.redirect_stderr(io.StringIO()):
            app.main(arguments)
    assert no_heavy_module() == [], (arguments, no_heavy_module()[:3])
"""


def test_help_and_checks_load_neither_tensorflow_nor_beam(place):
    lines = [["--help"], ["train", "--help"], ["train"], ["evaluate"], ["show", "mine"]]
    lines += [
        ["train", "--epochs=nan"],
        ["train", "--hparams=depth=3"],
        ["preprocess", "--input=lacking.csv", DECLARED],
        ["run", INPUT],
        ["run", INPUT, "--label=y", "--dataset_dir=mine"],
        ["predict", INPUT, "--output=o"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", LIGHT.format(lines=lines)],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_output_that_is_read_in_part(tmp_path):
    """More than a pipe's reader wants, in one piece, and then the end."""
    done = subprocess.run(
        [
            "bash",
            "-c",
            f"{sys.executable} -m pipeline models | head -1; echo ${{PIPESTATUS[0]}}",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # All of it may be written before the reader ends.
    assert done.stdout.split()[-1] in ("0", "130")
    assert done.stderr == ""


def test_output_that_nobody_reads(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = run(
            tmp_path,
            "--help",
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, "")


class TestMain:
    """What happens to errors that come out of a command."""

    def run(self, monkeypatch, error: BaseException) -> int:
        def fails(arguments):
            raise error

        monkeypatch.setattr(app, "_run", fails)
        return app.main(["train"])

    def test_interrupt(self, monkeypatch, capsys):
        assert self.run(monkeypatch, KeyboardInterrupt()) == ExitCode.INTERRUPTED
        assert capsys.readouterr().err.startswith("interrupted; ")

    def test_full_disk(self, monkeypatch, capsys):
        error = OSError(28, "No space left on device", "/work/x")
        assert self.run(monkeypatch, error) == ExitCode.USER_ERROR
        expected = "error: No space left on device: /work/x\n"
        assert capsys.readouterr().err == expected

    def test_full_disk_without_a_name(self, monkeypatch, capsys):
        error = OSError(28, "No space left on device")
        assert self.run(monkeypatch, error) == ExitCode.USER_ERROR
        assert capsys.readouterr().err == "error: No space left on device\n"

    @pytest.mark.parametrize(
        "error",
        [FileNotFoundError(2, "No such file"), RuntimeError(), BrokenPipeError()],
    )
    def test_a_bug_keeps_its_traceback(self, monkeypatch, error):
        with pytest.raises(type(error)):
            self.run(monkeypatch, error)
