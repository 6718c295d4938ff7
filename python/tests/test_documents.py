"""Documents that numalab has just written, as tables.

NUMALAB_DOCUMENTS is a directory of them, NUMALAB the command, NUMALAB_SCHEMAS the names of all
schemas; crates/cli/tests/python.rs sets them.
"""

import json
import os
import tempfile
import unittest
from pathlib import Path

import numalab_results as nr

DOCUMENTS = Path(os.environ["NUMALAB_DOCUMENTS"])


def read(kind: str) -> nr.Document:
    return nr.read(DOCUMENTS / f"{kind}.json")


class EveryDocument(unittest.TestCase):
    def test_each_kind_has_tables_that_hold_all_of_its_lists(self) -> None:
        found = sorted(DOCUMENTS.glob("*.json"))
        self.assertGreaterEqual(len(found), 6)
        for path in found:
            document = nr.read(path)
            self.assertEqual(document.kind, path.stem)
            for name in document.tables:
                if name != "samples":
                    self.assertEqual(len(document.table(name)), count(document.data, name), name)

    def test_every_schema_of_the_command_is_known(self) -> None:
        for schema in os.environ["NUMALAB_SCHEMAS"].split():
            self.assertIn(nr.Document({"schema": schema}).kind, schema)

    def test_a_table_that_is_not_there_is_named_with_those_that_are(self) -> None:
        with self.assertRaisesRegex(KeyError, "'nosuch': expected one of .*cells"):
            read("run").table("nosuch")

    def test_other_files_and_versions_are_refused_with_what_was_expected(self) -> None:
        for text, reason in [
            ("{", "not JSON"),
            ("[]", "expected a document"),
            ('{"schema": "numalab/1"}', "expected numalab/KIND-2"),
            ('{"schema": "numalab/run-7"}', "expected version 2"),
        ]:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                with self.assertRaisesRegex(nr.NotADocument, reason):
                    nr.read(file.name)


class Runs(unittest.TestCase):
    def test_a_sample_has_what_its_cell_was(self) -> None:
        run = read("run")
        cells = {cell["id"]: cell for cell in run.data["cells"]}
        samples = run.table("samples")
        self.assertEqual(len(samples), sum(len(cell["samples"]) for cell in cells.values()))
        for row in samples.where(kind="latency"):
            self.assertEqual(row["size_bytes"], cells[row["cell"]]["size_bytes"])
            self.assertEqual(row["worker.cpu"], cells[row["cell"]]["worker"]["cpu"])

    def test_disturbed_samples_do_not_count_unless_nearly_all_are(self) -> None:
        def cell(clean: int, disturbed: int) -> dict:
            sample = {"cell": "a", "metric": "latency", "value": 1.0}
            busy = {**sample, "disturbed": "preempted"}
            return {"id": "a", "samples": [sample] * clean + [busy] * disturbed}

        for clean, disturbed, counted in [(6, 90, 6), (1, 3, 1), (1, 4, 5), (0, 1, 1)]:
            document = nr.Document({"schema": "numalab/run-2", "cells": [cell(clean, disturbed)]})
            self.assertEqual(len(document.table("samples").where(counts=True)), counted)


class Studies(unittest.TestCase):
    def test_a_sample_has_its_treatment_by_name_and_setting(self) -> None:
        study = read("study")
        entries = [e for e in study.data["journal"] if e["entry"] == "sample"]
        samples = study.table("samples")
        self.assertEqual(len(samples), sum(len(e["readings"]) for e in entries))
        self.assertEqual(set(samples.column("label")), {"a", "b"})
        for row in samples:
            self.assertEqual(row["treatment"], f"label={row['label']}")

    def test_a_result_directory_is_read_by_the_command(self) -> None:
        directory = next((DOCUMENTS / "results").iterdir())
        study = nr.read(directory)
        self.assertEqual(study.kind, "study")
        self.assertEqual(study.table("samples").rows, read("study").table("samples").rows)


class Frames(unittest.TestCase):
    def test_a_data_frame_has_a_row_for_each_sample(self) -> None:
        samples = read("run").table("samples")
        frame = samples.to_pandas()
        self.assertEqual(list(frame.columns), samples.columns)
        self.assertEqual(len(frame), len(samples))
        self.assertAlmostEqual(frame["value"].sum(), sum(row["value"] for row in samples))

    def test_charts_show_the_medians_and_intervals(self) -> None:
        import matplotlib

        matplotlib.use("Agg")
        from numalab_results import plots

        run, study = read("run"), read("study")
        lines = plots.latency_by_size(run).get_lines()
        counted = run.table("samples").where(kind="latency", metric="latency", counts=True)
        sizes = {row["size_bytes"] for row in counted}
        self.assertEqual({x for line in lines for x in line.get_xdata()}, sizes)
        self.assertEqual(len(plots.effects(study).get_yticks()), len(study.table("effects")))
        plots.latency_matrix(run)


def count(value: object, name: str) -> int:
    """The objects of a list by its dotted name, through all lists on the way."""
    values = [value]
    for part in name.split("."):
        inner = [v[part] for v in values if isinstance(v, dict) and part in v]
        values = [x for v in inner for x in (v if isinstance(v, list) else [v])]
    return len(values)


if __name__ == "__main__":
    unittest.main()
