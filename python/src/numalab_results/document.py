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
    """The input is not a document of numalab, or has a version that this package does not read."""


class Document:
    """A document: its ``kind``, all of it as ``data``, and its tables."""

    def __init__(self, data: Dict[str, Any], place: str = "document") -> None:
        schema = data.get("schema")
        match = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
        if match is None:
            raise NotADocument(f"{place}: schema {schema!r}: expected numalab/KIND-2")
        version = VERSIONS.get(match[1], 2)
        if int(match[2]) != version:
            raise NotADocument(
                f"{place}: schema {schema!r}: expected version {version}; "
                "`numalab report DIRECTORY --format json` writes earlier results in it"
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
        """Returns the names of its tables."""
        return sorted(self._tables)

    def table(self, name: str) -> Table:
        """Returns a table by its name.

        ``samples`` has a row for each measured value, with its cell or treatment. The
        other tables are the document's own lists: ``cells``, ``findings``, ``effects``,
        ``machine.nodes``, and so on. A list within another is named after both, and its
        rows also have their parent's plain values (``cells.placements``).
        """
        if name not in self._tables:
            raise KeyError(f"{name!r}: expected one of {', '.join(self.tables)}")
        return self._tables[name]


def read(place: Union[str, "os.PathLike[str]"]) -> Document:
    """Reads a document (the output of ``--format json``), or a result directory.

    A directory is read by ``numalab report``, which joins its files and judges them. The
    command is the one in the environment variable ``NUMALAB``, else that in ``PATH``.
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
            f"{directory}: reading a directory needs numalab, which is not in PATH; where it "
            f"is installed, `numalab report {directory} --format json` writes the document"
        )
    ended = subprocess.run(
        [command, "report", str(directory), "--format", "json"],
        capture_output=True, text=True, check=False,
    )
    # With 4 a check failed (something is worse), but the report is complete.
    if ended.returncode not in (0, 4):
        raise NotADocument(ended.stderr.strip() or f"{directory}: {command} report failed")
    return ended.stdout
