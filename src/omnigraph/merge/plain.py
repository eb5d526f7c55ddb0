"""Rows as JSON: dates and times as ISO text, bytes as base64."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Mapping
from typing import Any


def plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with every value in a form that JSON has."""
    return {name: plain_value(value) for name, value in row.items()}


def plain_value(value: Any) -> Any:
    """One value in a form that JSON has."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    return value
