"""The command line: `python -m pipeline COMMAND --flags`."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import select
import sys
import textwrap
from collections.abc import Sequence

from absl import flags

from pipeline import environment, system_errors
from pipeline.commands import COMMANDS, Command
from pipeline.console import Console
from pipeline.flags import (
    blessing,
    checks,
    cluster,
    compute,
    data,
    evaluation,
    exporting,
    general,
    history,
    input,
    launcher,
    metrics,
    monitoring,
    notices,
    output,
    paths,
    predicting,
    publishing,
    retraining,
    schema,
    serve,
    serving,
    showing,
    slicing,
    training,
    tuning,
    warm_start,
    watching,
    workers,
    writing,
)
from pipeline.invocation import Invocation
from pipeline.types import ExitCode, UserError

_PROGRAM = "python -m pipeline"
_TOPICS = {
    "paths": paths,
    "data": data,
    "writing": writing,
    "workers": workers,
    "schema": schema,
    "checks": checks,
    "showing": showing,
    "output": output,
    "predicting": predicting,
    "input": input,
    "training": training,
    "evaluation": evaluation,
    "warm_start": warm_start,
    "watching": watching,
    "serving": serving,
    "slicing": slicing,
    "exporting": exporting,
    "serve": serve,
    "monitoring": monitoring,
    "tuning": tuning,
    "metrics": metrics,
    "compute": compute,
    "cluster": cluster,
    "launcher": launcher,
    "retraining": retraining,
    "blessing": blessing,
    "publishing": publishing,
    "notices": notices,
    "history": history,
    "general": general,
}
_FLAG = re.compile(r"--?(?:no)?([A-Za-z_]\w*)")


def _define_flags() -> tuple[flags.FlagValues, dict[str, str]]:
    """Returns all flags, and the topic of each."""
    values = flags.FlagValues()
    values.set_gnu_getopt(True)
    topic_of: dict[str, str] = {}
    for topic, module in _TOPICS.items():
        module.define(values)
        for name in values:
            topic_of.setdefault(name, topic)
    return values, topic_of


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [
        f"usage: {_PROGRAM} COMMAND --flags",
        "",
        "Trains TensorFlow Estimators from raw files to a verified SavedModel.",
        "",
        *(f"  {name:<{width}}  {c.summary}" for name, c in COMMANDS.items()),
        "",
        f"{_PROGRAM} COMMAND --help explains a command's flags. For a start:",
        f"  {_PROGRAM} {COMMANDS['run'].example}",
    ]
    return "\n".join(lines)


def _help(name: str, command: Command, values: flags.FlagValues, topic_of) -> str:
    lines = [
        f"usage: {_PROGRAM} {name} {'PROGRAM [ARGS]' if command.execute else '--flags'}",
        "",
        f"{name}: {command.summary}",
        "",
        f"example: {_PROGRAM} {command.example}",
    ]
    for topic in command.topics:
        lines += ["", _TOPICS[topic].__doc__.split(":", 1)[1].strip().splitlines()[0]]
        for flag_name in (f for f in values if topic_of[f] == topic):
            flag = values[flag_name]
            default = "" if flag.default is None else f" (default: {flag.default})"
            text = f"{' '.join(flag.help.split())}{default}"
            if topic == "general" and flag_name == "help":
                text = "Show this text."
            lines += textwrap.wrap(
                f"--{flag_name}  {text}",
                width=88,
                initial_indent="  ",
                subsequent_indent="      ",
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def _find_command(arguments: Sequence[str]) -> tuple[str, Command]:
    name = arguments[0]
    if name.startswith("-"):
        raise UserError(f"give the command before {name}; there are: {_names()}")
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        raise UserError(f"unknown command {name!r}; {hint}there are: {_names()}")
    return name, COMMANDS[name]


def _names() -> str:
    return ", ".join(COMMANDS)


def _unknown_flag(name: str, flag: str, topic_of: dict[str, str]) -> str:
    allowed = [f for f, topic in topic_of.items() if topic in COMMANDS[name].topics]
    close = difflib.get_close_matches(flag, allowed, n=1)
    hint = f"; did you mean --{close[0]}?" if close else ""
    return f"--{flag} is unknown{hint} (see {_PROGRAM} {name} --help)"


def _refuse_foreign_flags(
    name: str, arguments: Sequence[str], topic_of: dict[str, str]
) -> None:
    """Refuses a flag that has no effect on the command.

    A flagfile may hold flags of other commands, so that one file serves them all.
    """
    for argument in arguments:
        if argument == "--":
            break
        match = _FLAG.match(argument)
        if not match:
            continue
        for flag in (match.group(1), argument.lstrip("-").split("=")[0]):
            topic = topic_of.get(flag)
            if topic and topic not in COMMANDS[name].topics:
                users = [n for n, c in COMMANDS.items() if topic in c.topics]
                raise UserError(
                    f"--{flag} has no effect on {name}; it belongs to"
                    f" {', '.join(users)}"
                )


def _given_flags(arguments: Sequence[str]) -> frozenset[str]:
    """Returns the flags that stand on the command line itself, not in a flagfile."""
    return frozenset(
        name
        for argument in arguments
        if (match := _FLAG.match(argument))
        for name in (match.group(1), argument.lstrip("-").split("=")[0])
    )


def _parse(
    name: str, arguments: Sequence[str], values: flags.FlagValues, topic_of
) -> tuple[str, ...]:
    """Parses flags into `values`; returns the words that are none."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            words = tuple(values([_PROGRAM, *arguments])[1:])
    except flags.UnrecognizedFlagError as error:
        raise UserError(_unknown_flag(name, error.flagname, topic_of)) from None
    except flags.CantOpenFlagFileError as error:
        raise UserError(f"--flagfile: cannot read it: {error.__context__}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"--flagfile: it is not UTF-8 text: {error}") from None
    except flags.Error as error:
        raise UserError(str(error).removeprefix("flag ")) from None
    if said.getvalue():
        # absl only warns, and leaves out what it was asked to read.
        raise UserError(f"--flagfile: a file names itself: {said.getvalue()}")
    if "--flagfile=" in arguments or "-flagfile=" in arguments:
        raise UserError("--flagfile is empty: give the path of a file")
    _refuse_foreign_flags(name, arguments, topic_of)
    if words and not COMMANDS[name].takes_arguments and not values.help:
        raise UserError(
            f"{words[0]!r} is not a flag, and {name} takes flags only; did you mean"
            f" --FLAG={words[0]}?"
        )
    return words


def _as_flagfile(name: str, values: flags.FlagValues, topic_of) -> str:
    """Returns a flagfile that repeats the command."""
    topics = set(COMMANDS[name].topics) - {"general"}
    lines = [f"# {_PROGRAM} {name} --flagfile=THIS_FILE"]
    for flag_name in values:
        flag = values[flag_name]
        if topic_of[flag_name] in topics and flag.value not in (None, [], ""):
            lines.append(flag.serialize())
    return "\n".join(lines) + "\n"


def _run(arguments: Sequence[str]) -> ExitCode:
    if not arguments or arguments[0] in ("help", "--help", "-h"):
        print(_overview())
        return ExitCode.OK
    name, command = _find_command(arguments)
    if command.execute and arguments[1:2] not in (["--help"], ["-h"]):
        command.execute(arguments[1:])
        return ExitCode.OK
    values, topic_of = _define_flags()
    given = ["--help" if argument == "-h" else argument for argument in arguments[1:]]
    words = _parse(name, given, values, topic_of)
    if values.help:
        print(_help(name, command, values, topic_of))
        return ExitCode.OK
    environment.set_verbosity(values.verbosity)
    ended = command.run(
        Invocation(
            arguments=words,
            paths=paths.read(values),
            data=data.read(values),
            input=input.read(values),
            training=training.read(values),
            serving=serving.read(values),
            slicing=slicing.read(values),
            exporting=exporting.read(values),
            serve=serve.read(values),
            monitoring=monitoring.read(values),
            tuning=tuning.read(values),
            schema=schema.read(values),
            checks=checks.read(values),
            showing=showing.read(values),
            options=compute.read(values),
            cluster=cluster.read(values),
            launcher=launcher.read(values),
            retraining=retraining.read(values),
            tf_config=environment.take_tf_config(),
            output=output.read(values),
            predicting=predicting.read(values),
            given=_given_flags(given),
            flagfile=_as_flagfile(name, values, topic_of),
            console=Console(values.verbosity, values.progress_seconds),
        )
    )
    return ExitCode.OK if ended is None else ended


def _reader_is_gone() -> bool:
    """Whether standard output was a pipe that nobody reads any more."""
    # To flush once more would tell nothing: what failed to be written may be forgotten.
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    if gone:
        # What is still to be written must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return gone


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit code (`types.ExitCode`).

    Args:
      arguments: The command line without the program's name.
    """
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output, e.g. `head`, has seen enough. The work may not be
        # done, though.
        if not _reader_is_gone():
            raise
        return ExitCode.INTERRUPTED
    except OSError as error:
        if not system_errors.is_system_error(error):
            raise
        where = f": {error.filename}" if error.filename else ""
        print(f"error: {error.strerror}{where}", file=sys.stderr)
        return ExitCode.USER_ERROR
    return code


def console_main() -> None:
    """Entry point of the console script."""
    # A path may hold bytes that are no text, and a terminal may know ASCII only. What a
    # program of the user's prints is its own affair.
    if sys.argv[1:2] != ["exec"]:
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(main(sys.argv[1:]))
