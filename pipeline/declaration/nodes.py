"""YAML as nodes that know their place, so that an error can name line and column."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Iterator
from typing import NoReturn, TypeVar

import yaml

from pipeline.types import UserError

_EnumT = TypeVar("_EnumT", bound=enum.Enum)
_INT_TAG = "tag:yaml.org,2002:int"
_NULL_TAG = "tag:yaml.org,2002:null"
# YAML 1.1 also knows octal 010 and sexagesimal 1:30, which people do not mean.
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DIGITS = 40
_MAX_SHOWN = 60


def _listed(allowed: Collection[str]) -> str:
    return ", ".join(allowed)


class Node:
    """A YAML value and where it stands.

    Args:
      node: The composed node (no Python object is built from it).
      path: The file, for messages.
      where: Dotted place inside the file, e.g. `columns.age.type`.
      name: The node of the name before the value, where there is one.
    """

    def __init__(
        self, node: yaml.Node, path: str, where: str = "", name: yaml.Node | None = None
    ):
        self._node = node
        self._path = path
        self.where = where
        self._name = name

    def fail(self, message: str) -> NoReturn:
        """Raises UserError that names file, line, column and place."""
        self._fail_at(self._node, message)

    def fail_name(self, message: str) -> NoReturn:
        """Like `fail`, but at the name, which may stand on an earlier line."""
        self._fail_at(self._name or self._node, message)

    def _fail_at(self, node: yaml.Node, message: str) -> NoReturn:
        mark = node.start_mark
        place = f"{self.where}: " if self.where else ""
        raise UserError(
            f"{self._path}:{mark.line + 1}:{mark.column + 1}: {place}{message}"
        )

    def _child(
        self, node: yaml.Node, name: str, name_node: yaml.Node | None = None
    ) -> Node:
        where = f"{self.where}.{name}" if self.where else name
        return Node(node, self._path, where, name_node)

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yields keys and values of a mapping; a repeated key is an error."""
        if not isinstance(self._node, yaml.MappingNode):
            self.fail("needs a mapping (lines of `name: value`)")
        seen: set[str] = set()
        for key, value in self._node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._fail_at(key, "a name must be plain text")
            name = Node(key, self._path, self.where).text()
            if name in seen:
                self._fail_at(key, f"{name!r} stands twice")
            seen.add(name)
            yield name, self._child(value, name, key)

    def fields(self, required: Collection[str], optional: Collection[str]):
        """Returns a mapping's values by name, refusing unknown and absent names."""
        found: dict[str, Node] = {}
        for name, node in self.items():
            if name not in required and name not in optional:
                node.fail_name(
                    f"unknown; allowed here: {_listed([*required, *optional])}"
                )
            found[name] = node
        absent = [name for name in required if name not in found]
        if absent:
            self.fail(f"needs {_listed(absent)}")
        return found

    def elements(self) -> list[Node]:
        """Returns the elements of a list."""
        if not isinstance(self._node, yaml.SequenceNode):
            self.fail("needs a list, e.g. [a, b]")
        return [self._child(n, str(i)) for i, n in enumerate(self._node.value)]

    def text(self) -> str:
        """Returns a scalar as it is written, whatever YAML would make of it."""
        if not isinstance(self._node, yaml.ScalarNode):
            self.fail("needs a single value")
        if _SURROGATE.search(self._node.value):
            self.fail(f"{self._shown()} holds half a character (a surrogate escape)")
        return self._node.value

    def texts(self) -> tuple[str, ...]:
        return tuple(element.text() for element in self.elements())

    def is_null(self) -> bool:
        """Whether it is empty, `null` or `~`, without quotes."""
        return self._node.tag == _NULL_TAG

    def integer(self, minimum: int | None = None, maximum: int | None = None) -> int:
        """Returns a whole decimal number that lies in these limits."""
        limits = "" if minimum is None else f" of at least {minimum}"
        if maximum is not None:
            limits = f" from {minimum} to {maximum}"
        plain = self._node.tag == _INT_TAG and _DECIMAL.fullmatch(self.text())
        if not plain or len(self.text()) > _MAX_DIGITS:
            self.fail(f"{self._shown()} is not a whole number{limits}")
        value = int(self.text().replace("_", ""))
        if (minimum is not None and value < minimum) or (
            maximum is not None and value > maximum
        ):
            self.fail(f"{value} is not a whole number{limits}")
        return value

    def integer_text(self) -> str:
        """Returns the decimal text of a whole number, which may be quoted."""
        try:
            return str(int(self.text()))
        except ValueError:
            self.fail(f"{self._shown()} is not a whole number")

    def number(self) -> float:
        """Returns a finite number."""
        try:
            # YAML 1.1 takes 1e-3 for text; Python's reading is what people mean.
            value = float(self.text())
        except ValueError:
            self.fail(f"{self._shown()} is not a number")
        if value - value != 0:
            self.fail(f"{self._shown()} is not a finite number")
        return value

    def boolean(self) -> bool:
        """Returns true or false."""
        return self.one_of(("true", "false")) == "true"

    def choice(self, kind: type[_EnumT]) -> _EnumT:
        """Returns the member of an enum that has this value."""
        try:
            return kind(self.text())
        except ValueError:
            allowed = _listed([member.value for member in kind])
            self.fail(f"{self._shown()} is unknown; allowed: {allowed}")

    def one_of(self, allowed: Collection[str]) -> str:
        if self.text() not in allowed:
            self.fail(f"{self._shown()} is unknown; allowed: {_listed(allowed)}")
        return self.text()

    def _shown(self) -> str:
        if not isinstance(self._node, yaml.ScalarNode):
            return "this"
        value = self._node.value
        if len(value) > _MAX_SHOWN:
            return f"{value[:_MAX_SHOWN]!r}..."
        return repr(value)


def _place(path: str, before: str) -> str:
    """Returns path:line:column of what follows the text `before`."""
    line = before.count("\n")
    return f"{path}:{line + 1}:{len(before) - before.rfind(chr(10))}"


def _read_text(path: str) -> str:
    try:
        with open(path, "rb") as f:
            return f.read().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        place = _place(path, error.object[: error.start].decode())
        raise UserError(f"{place}: not UTF-8 text: {error.reason}") from error


def build(node: Node, kind: type, **values):
    """Returns kind(**values); what it refuses is an error at the node's place."""
    try:
        return kind(**values)
    except ValueError as error:
        node.fail(str(error))


def load(path: str) -> Node:
    """Parses a YAML file into a Node.

    Raises:
      UserError: The file cannot be read, is empty, or is no YAML.
    """
    text = _read_text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        said = ", ".join(filter(None, (error.context, error.problem)))
        if "'\\t'" in said:
            said += "; indent with blanks"
        raise UserError(f"{place}: not valid YAML: {said}") from error
    except yaml.reader.ReaderError as error:
        place = _place(path, text[: error.position])
        raise UserError(
            f"{place}: not valid YAML: the character U+{error.character:04X} may not"
            " stand in it"
        ) from error
    except RecursionError:
        raise UserError(f"{path}: not valid: it is nested too deep") from None
    except (ValueError, OverflowError) as error:
        # PyYAML lets the last two out, e.g. where an escape is no character.
        raise UserError(
            f"{path}: not valid YAML: an escape or number in it is out of range"
        ) from error
    if root is None:
        raise UserError(f"{path} is empty")
    return Node(root, path)
