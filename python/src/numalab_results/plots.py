"""The charts of numalab's pages, drawn by matplotlib.

Each function takes a document and optionally the axes to draw into, and returns the axes.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

from .document import Document


def latency_by_size(run: Document, axes: Optional[Any] = None) -> Any:
    """Draws median latency over buffer size, with a line for each cpu, node, page size and pattern."""
    axes = _axes(axes)
    for name, points in sorted(_ladders(run).items()):
        sizes = sorted(points)
        axes.plot(sizes, [median(points[size]) for size in sizes], marker="o", label=name)
    axes.set_xscale("log", base=2)
    axes.set_xlabel("buffer, bytes")
    axes.set_ylabel("latency, ns")
    axes.legend()
    return axes


def latency_matrix(run: Document, axes: Optional[Any] = None) -> Any:
    """Draws the median latency from each node's cpus to each node's memory, at the largest size."""
    found: Dict[Tuple[int, int], Dict[int, List[float]]] = defaultdict(lambda: defaultdict(list))
    nodes_of = {cpu["id"]: cpu["node"] for cpu in run.table("machine.cpus")}
    for row in run.table("samples").where(kind="latency", metric="latency", counts=True):
        pair = (nodes_of[row["worker.cpu"]], row["worker.node"])
        found[pair][row["size_bytes"]].append(row["value"])
    rows = sorted({cpu for cpu, _ in found})
    columns = sorted({memory for _, memory in found})
    largest = {pair: median(sizes[max(sizes)]) for pair, sizes in found.items()}
    values = [[largest.get((r, c), float("nan")) for c in columns] for r in rows]
    axes = _axes(axes)
    axes.imshow(values)
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            axes.text(x, y, f"{value:.0f}", ha="center", va="center")
    axes.set_xticks(range(len(columns)), [str(c) for c in columns])
    axes.set_yticks(range(len(rows)), [str(r) for r in rows])
    axes.set_xlabel("node of memory")
    axes.set_ylabel("node of processors")
    return axes


def effects(study: Document, axes: Optional[Any] = None) -> Any:
    """Draws the effect of each change in percent, with its interval and the margin of equivalence."""
    axes = _axes(axes)
    rows = [row for row in study.table("effects") if row.get("found.interval_percent")]
    for at, row in enumerate(rows):
        low, high = row["found.interval_percent"]
        axes.plot([low, high], [at, at], color="black")
        axes.plot(row["found.change_percent"], at, marker="o", color="black")
    margins = {row.get("margin_percent") for row in rows} - {None}
    if margins:
        margin = max(m for m in margins if m is not None)
        axes.axvspan(-margin, margin, alpha=0.15)
    names = [f"{row['workload']} {row['metric']}: {row['change']}" for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.axvline(0, linewidth=0.5, color="black")
    axes.set_xlabel("change, %")
    return axes


def _ladders(run: Document) -> Dict[str, Dict[int, List[float]]]:
    ladders: Dict[str, Dict[int, List[float]]] = defaultdict(lambda: defaultdict(list))
    for row in run.table("samples").where(kind="latency", metric="latency", counts=True):
        name = f"cpu {row['worker.cpu']}, node {row['worker.node']}, {row['pages']}"
        ladders[f"{name}, {row['pattern']}"][row["size_bytes"]].append(row["value"])
    return ladders


def _axes(axes: Optional[Any]) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots()[1]
