"""Rows with named values, and their conversion for other packages."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional


class Table:
    """Rows of one list of a document; columns are the union of the rows' names."""

    def __init__(self, name: str, rows: List[Dict[str, Any]]) -> None:
        self.name = name
        self.rows = rows

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return iter(self.rows)

    @property
    def columns(self) -> List[str]:
        """Returns the names of the columns, in the order of their first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def column(self, name: str) -> List[Optional[Any]]:
        """Returns the values of a column; ``None`` for rows without one."""
        if name not in self.columns:
            raise KeyError(f"{name!r}: expected one of {', '.join(self.columns)}")
        return [row.get(name) for row in self.rows]

    def where(self, **wanted: Any) -> "Table":
        """Returns the rows with these values."""
        rows = [r for r in self.rows if all(r.get(k) == v for k, v in wanted.items())]
        return Table(self.name, rows)

    def to_pandas(self) -> Any:
        """Returns a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def to_polars(self) -> Any:
        """Returns a ``polars.DataFrame``."""
        import polars

        return polars.DataFrame(self.rows, infer_schema_length=None)
