"""The command line: `python -m pipeline COMMAND --flags`."""

from __future__ import annotations

import difflib
import errno
import re
import sys
import textwrap
from collections.abc import Sequence

from absl import flags

from pipeline import environment
from pipeline.commands import COMMANDS, Command, Invocation
from pipeline.console import Console
from pipeline.flags import (
    checks,
    data,
    general,
    output,
    paths,
    schema,
    serving,
    showing,
    training,
)
from pipeline.types import ExitCode, UserError

_PROGRAM = "python -m pipeline"
_TOPICS = {
    "paths": paths,
    "data": data,
    "schema": schema,
    "checks": checks,
    "showing": showing,
    "output": output,
    "training": training,
    "serving": serving,
    "general": general,
}
_FLAG = re.compile(r"--?(?:no)?([A-Za-z_]\w*)")
# The machine's fault rather than ours: one line is enough to act on.
_SYSTEM_ERRORS = (errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT, errno.EPERM)


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
        f"usage: {_PROGRAM} {name} --flags",
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


def _refuse_foreign_flags(
    name: str, arguments: Sequence[str], topic_of: dict[str, str]
) -> None:
    """Refuses a flag that has no effect on the command.

    A flagfile may hold flags of other commands, so that one file serves them all.
    """
    for argument in arguments:
        match = _FLAG.match(argument)
        if argument == "--" or not match:
            continue
        for flag in (match.group(1), argument.lstrip("-").split("=")[0]):
            topic = topic_of.get(flag)
            if topic and topic not in COMMANDS[name].topics:
                users = [n for n, c in COMMANDS.items() if topic in c.topics]
                raise UserError(
                    f"--{flag} has no effect on {name}; it belongs to"
                    f" {', '.join(users)}"
                )


def _parse(
    name: str, arguments: Sequence[str], values: flags.FlagValues, topic_of
) -> tuple[str, ...]:
    """Parses flags into `values`; returns the words that are none."""
    try:
        words = tuple(values([_PROGRAM, *arguments])[1:])
    except flags.Error as error:
        raise UserError(str(error)) from None
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


def _run(arguments: Sequence[str]) -> None:
    if not arguments or arguments[0] in ("help", "--help", "-h"):
        print(_overview())
        return
    name, command = _find_command(arguments)
    values, topic_of = _define_flags()
    words = _parse(name, arguments[1:], values, topic_of)
    if values.help:
        print(_help(name, command, values, topic_of))
        return
    environment.set_verbosity(values.verbosity)
    command.run(
        Invocation(
            arguments=words,
            paths=paths.read(values),
            data=data.read(values),
            training=training.read(values),
            serving=serving.read(values),
            schema=schema.read(values),
            checks=checks.read(values),
            showing=showing.read(values),
            output=output.read(values),
            flagfile=_as_flagfile(name, values, topic_of),
            console=Console(values.verbosity),
        )
    )


def main(arguments: Sequence[str]) -> int:
    """Runs a command; returns its exit code (`types.ExitCode`).

    Args:
      arguments: The command line without the program's name.
    """
    try:
        _run(arguments)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output, e.g. `head`, has seen enough.
        sys.stdout = None
        return ExitCode.OK
    except OSError as error:
        if error.errno not in _SYSTEM_ERRORS:
            raise
        print(f"error: {error.strerror}: {error.filename}", file=sys.stderr)
        return ExitCode.USER_ERROR
    return ExitCode.OK


def console_main() -> None:
    """Entry point of the console script."""
    sys.exit(main(sys.argv[1:]))
