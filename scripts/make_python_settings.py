#!/usr/bin/env python3
"""Prints python/pytapeloop/_settings.py, made from the keys that the installed package declares.

    python scripts/make_python_settings.py > python/pytapeloop/_settings.py
"""

import textwrap

from pytapeloop import _native

HEAD = '''\
"""The settings with their types, for editors and type checkers. docs/CONFIG.md explains them.

``scripts/make_python_settings.py`` writes this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, TypedDict
'''

WIDTH = 100

# The inputs and the features are arguments of their own, and only a run has folders of tables and of a timeline.
ARGUMENTS = ("input", "output", "timeline", "features")


def class_of(table: str) -> str:
    """The name of the class of a table: ``HseA`` for ``hse_a``."""
    return "".join(word.capitalize() for word in table.split("_"))


def entry(name: str, annotation: str) -> str:
    """A line of a class, or several if it is long."""
    line = f"    {name}: {annotation}"
    if len(line) <= WIDTH:
        return line
    inner = textwrap.fill(annotation, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"    {name}: (\n{inner}\n    )"


def declaration(name: str, base: str, about: str, lines: list[str]) -> str:
    body = "\n".join(lines)
    return f'\n\nclass {name}({base}, total=False):\n    """{about}"""\n\n{body}\n'


def page() -> str:
    settings: list[str] = []
    tables: dict[str, list[str]] = {}
    arguments = {}
    for key, annotation in _native.settings():
        table, _, name = key.rpartition(".")
        if key in ARGUMENTS:
            arguments[key] = annotation
        elif table:
            if table not in tables:
                settings.append(entry(table, class_of(table)))
            tables.setdefault(table, []).append(entry(name, annotation))
        else:
            settings.append(entry(key, annotation))
    parts = [HEAD]
    for table, lines in tables.items():
        parts.append(declaration(class_of(table), "TypedDict", f"Keys of the table ``{table}``.", lines))
    parts.append(declaration("Settings", "TypedDict", "Keys of the config file.", settings))
    of_run = [entry(key, arguments[key]) for key in ("features", "timeline")]
    parts.append(declaration("RunSettings", "Settings", "The settings of ``run``.", of_run))
    return "".join(parts)


if __name__ == "__main__":
    print(page(), end="")
