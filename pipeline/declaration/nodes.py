"""YAML as nodes that know their place, so that an error can name line and column."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
from typing import NoReturn, TypeVar

import yaml

from pipeline.types import UserError

_EnumT = TypeVar("_EnumT", bound=enum.Enum)
_INT_TAG = "tag:yaml.org,2002:int"
_FLOAT_TAG = "tag:yaml.org,2002:float"
_NULL_TAG = "tag:yaml.org,2002:null"


def _listed(allowed: Collection[str]) -> str:
    return ", ".join(allowed)


class Node:
    """A YAML value and where it stands.

    Args:
      node: The composed node (no Python object is built from it).
      path: The file, for messages.
      where: Dotted place inside the file, e.g. `columns.age.type`.
    """

    def __init__(self, node: yaml.Node, path: str, where: str = ""):
        self._node = node
        self._path = path
        self.where = where

    def fail(self, message: str) -> NoReturn:
        """Raises UserError that names file, line, column and place."""
        mark = self._node.start_mark
        place = f"{self.where}: " if self.where else ""
        raise UserError(
            f"{self._path}:{mark.line + 1}:{mark.column + 1}: {place}{message}"
        )

    def _child(self, node: yaml.Node, name: str) -> Node:
        where = f"{self.where}.{name}" if self.where else name
        return Node(node, self._path, where)

    def items(self) -> Iterator[tuple[str, Node]]:
        """Yields keys and values of a mapping; a repeated key is an error."""
        if not isinstance(self._node, yaml.MappingNode):
            self.fail("needs a mapping (lines of `name: value`)")
        seen: set[str] = set()
        for key, value in self._node.value:
            if not isinstance(key, yaml.ScalarNode):
                Node(key, self._path, self.where).fail("a name must be plain text")
            if key.value in seen:
                Node(key, self._path, self.where).fail(f"{key.value!r} stands twice")
            seen.add(key.value)
            yield key.value, self._child(value, key.value)

    def fields(self, required: Collection[str], optional: Collection[str]):
        """Returns a mapping's values by name, refusing unknown and absent names."""
        found: dict[str, Node] = {}
        for name, node in self.items():
            if name not in required and name not in optional:
                node.fail(f"unknown; allowed here: {_listed([*required, *optional])}")
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
        return self._node.value

    def texts(self) -> tuple[str, ...]:
        return tuple(element.text() for element in self.elements())

    def is_null(self) -> bool:
        return self._node.tag == _NULL_TAG

    def integer(self, minimum: int | None = None) -> int:
        """Returns a whole number of at least `minimum`."""
        at_least = "" if minimum is None else f" of at least {minimum}"
        if self._node.tag != _INT_TAG:
            self.fail(f"{self._shown()} is not a whole number{at_least}")
        value = yaml.safe_load(self._node.value)
        if minimum is not None and value < minimum:
            self.fail(f"{value} is not a whole number{at_least}")
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
        if isinstance(self._node, yaml.ScalarNode):
            return repr(self._node.value)
        return "this"


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
    try:
        with open(path, encoding="utf-8-sig") as f:
            text = f.read()
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        raise UserError(f"{place}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from error
    if root is None:
        raise UserError(f"{path} is empty")
    return Node(root, path)
