"""A document that numalab has written, and its tables."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Union

from .flatten import tables_of
from .samples import samples_of
from .table import Table

#: The version of each kind's schema that this package knows, 2 where none is said.
VERSIONS = {"advice": 1, "emulation": 1, "machine-list": 1, "profile": 1, "self-test": 1}

_SCHEMA = re.compile(r"numalab/([a-z-]+)-([0-9]+)")


class NotADocument(ValueError):
    """What was read is not a document of numalab, or one of a version that is not known."""


class Document:
    """A document by its schema: ``kind``, the whole as ``data``, and its tables."""

    def __init__(self, data: Dict[str, Any], place: str = "document") -> None:
        schema = data.get("schema")
        match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
        if match is None:
            raise NotADocument(f"{place}: schema {schema!r}: expected numalab/KIND-2")
        version = VERSIONS.get(match[1], 2)
        if int(match[2]) != version:
            raise NotADocument(
                f"{place}: schema {schema!r}: expected version {version}; "
                "`numalab report DIRECTORY --format json` writes results of before anew"
            )
        #: ``run``, ``study``, ``ranks``, ``fleet``, ``comparison``, ...
        self.kind: str = match[1]
        #: The document as it was written.
        self.data: Dict[str, Any] = data
        self._tables: Dict[str, Table] = {
            name: Table(name, rows) for name, rows in tables_of(data).items()
        }
        samples = samples_of(self.kind, data)
        if samples:
            self._tables["samples"] = Table("samples", samples)

    def __repr__(self) -> str:
        return f"<numalab {self.kind}: {', '.join(self.tables)}>"

    @property
    def tables(self) -> List[str]:
        """The names of its tables."""
        return sorted(self._tables)

    def table(self, name: str) -> Table:
        """A table by its name.

        ``samples`` is what was measured, a row for each value, with what its cell or
        treatment was. The others are the document's own lists: ``cells``, ``findings``,
        ``effects``, ``machine.nodes``, and so on. Those within others are named by both,
        and each row has its parent's plain values too (``cells.placements``).
        """
        if name not in self._tables:
            raise KeyError(f"{name!r}: expected one of {', '.join(self.tables)}")
        return self._tables[name]


def read(place: Union[str, "os.PathLike[str]"]) -> Document:
    """Reads a document (what ``--format json`` writes), or a result directory.

    A directory is read by ``numalab report``, which joins its files and judges them; the
    command is looked for in ``NUMALAB``, then in ``PATH``.
    """
    path = Path(place)
    text = _report(path) if path.is_dir() else path.read_text(encoding="utf-8")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise NotADocument(f"{path}: not JSON: {error}") from error
    if not isinstance(data, dict):
        raise NotADocument(f"{path}: expected a document of numalab")
    return Document(data, str(path))


def _report(directory: Path) -> str:
    command = os.environ.get("NUMALAB") or shutil.which("numalab")
    if command is None:
        raise FileNotFoundError(
            f"{directory}: a directory is read by numalab, which is not in PATH: "
            f"`numalab report {directory} --format json` writes the document elsewhere"
        )
    ended = subprocess.run(
        [command, "report", str(directory), "--format", "json"],
        capture_output=True, text=True, check=False,
    )
    # 4 says that something is worse (a gate); the report is whole.
    if ended.returncode not in (0, 4):
        raise NotADocument(ended.stderr.strip() or f"{directory}: {command} report failed")
    return ended.stdout
