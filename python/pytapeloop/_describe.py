"""What features compute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._features import settings_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings


class FeatureList(list[dict[str, Any]]):
    """Features as dictionaries, which print as ``tapeloop features`` prints them."""

    def __init__(self, features: list[dict[str, Any]], text: str) -> None:
        super().__init__(features)
        self._text = text

    def __repr__(self) -> str:
        return self._text


def describe(
    features: str | Sequence[str] | None = None, **settings: Unpack[Settings]
) -> list[dict[str, Any]]:
    """Lists features with their columns, formulas, units and sources.

    >>> pytapeloop.describe()  # a line for each feature, and the presets
    >>> pytapeloop.describe("phi, psi")  # the formula and the unit of two columns
    >>> [column["name"] for feature in pytapeloop.describe("sasa") for column in feature["columns"]]

    Args:
        features: Names of features, presets and columns, as ``Features`` takes them. A column's name
            lists the feature with this column alone. None for all features.
        settings: Keys of the config file, as ``Features`` takes them: names of columns depend on some.

    Returns:
        A list that prints as text. Each feature is a dictionary of ``name``, ``summary``, ``formula``,
        ``source`` (the publication; empty if there is none), ``needs`` (features that are computed
        first), ``settings`` and ``columns``; each column one of ``name``, ``table``, ``type``, ``unit``
        (empty if it has none) and ``description``.

    Raises:
        ConfigError: A name is unknown, or a setting is wrong.
    """
    text, listed = _native.describe(settings_text(features, dict(settings)))
    return FeatureList(json.loads(listed), text.rstrip("\n"))
