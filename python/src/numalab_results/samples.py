"""Samples, with a row for each measured value."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Dict, Iterator, List

from .flatten import Row, flat


def samples_of(kind: str, document: Dict[str, Any]) -> List[Row]:
    """Returns the samples of a run, its ranks or a study; none for other kinds."""
    if kind == "study":
        return list(_of_study(document))
    return [row for cell in document.get("cells") or [] for row in _of_cell(cell)]


def _of_cell(cell: Dict[str, Any]) -> Iterator[Row]:
    about = {k: v for k, v in flat(cell).items() if not isinstance(v, list)}
    about["cell"] = about.pop("id", None)
    by_metric: Dict[str, List[Row]] = defaultdict(list)
    for sample in cell.get("samples") or []:
        by_metric[sample["metric"]].append(sample)
    for samples in by_metric.values():
        disturbed = sum(1 for sample in samples if sample.get("disturbed"))
        all_count = _all_windows_count(len(samples) - disturbed, disturbed)
        for sample in samples:
            counts = all_count or not sample.get("disturbed")
            yield {**about, **flat(sample), "counts": counts}


def _all_windows_count(clean: int, disturbed: int) -> bool:
    """Returns true if disturbed windows count too, since a busy machine leaves few others.

    The rule is that of `all_windows_count` in numalab's crate `record`.
    """
    return clean < 6 and disturbed > 3 * clean


def _of_study(study: Dict[str, Any]) -> Iterator[Row]:
    treatments = study.get("treatments") or []
    workloads = study.get("workloads") or []
    for entry in study.get("journal") or []:
        if entry.get("entry") != "sample":
            continue
        treatment = treatments[entry["treatment"]]
        about = {
            "block": entry["block"],
            "arm": entry.get("arm"),
            "treatment": treatment["name"],
            **flat(treatment.get("settings") or {}),
            "workload": workloads[entry["workload"]]["name"],
            "attempt": entry.get("attempt"),
            "is_disturbed": bool(entry.get("disturbances")),
        }
        for reading in entry.get("readings") or []:
            yield {**about, **flat(reading)}
