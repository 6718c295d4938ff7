"""Conversion of a document's lists to tables."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

Row = Dict[str, Any]


def flat(value: Dict[str, Any], prefix: str = "") -> Row:
    """Returns the plain values of an object by dotted names; lists of plain values stay lists.

    Empty lists are left out, because the type of their items is unknown.
    """
    row: Row = {}
    for name, inner in value.items():
        if isinstance(inner, dict):
            row.update(flat(inner, f"{prefix}{name}."))
        elif inner != [] and not _is_table(inner):
            row[prefix + name] = inner
    return row


def tables_of(document: Dict[str, Any]) -> Dict[str, List[Row]]:
    """Returns every list of objects by its dotted name, with a row for each object.

    A row of a list within a list also has its parent's plain values, under the parent's name.
    """
    tables: Dict[str, List[Row]] = {}
    _add(document, "", {}, tables)
    return tables


def _add(value: Dict[str, Any], path: str, parents: Row, tables: Dict[str, List[Row]]) -> None:
    for name, rows in _lists(value, path):
        for row in rows:
            own = flat(row)
            tables.setdefault(name, []).append({**parents, **own})
            short = name.rsplit(".", 1)[-1]
            inherited = {f"{short}.{key}": plain for key, plain in own.items()}
            _add(row, f"{name}.", {**parents, **inherited}, tables)


def _lists(value: Dict[str, Any], path: str) -> Iterator[Tuple[str, List[Row]]]:
    for name, inner in value.items():
        if _is_table(inner):
            yield path + name, inner
        elif isinstance(inner, dict):
            yield from _lists(inner, f"{path}{name}.")


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(x, dict) for x in value)
