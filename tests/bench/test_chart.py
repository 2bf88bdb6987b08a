"""The picture of a report."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench import chart
from bench.process import BenchError
from bench.workloads import ALL
from tests.bench.reports import report

TIMES = {
    "create": {"vfsd-redis": [2.0], "floor": [1.0], "juicefs": [3.0], "juicefs-fsync": [8.0]},
    "read-cold": {"vfsd-redis": [0.4], "floor": [0.5], "juicefs": [2.0]},
    "list": {"vfsd-redis": [0.1], "floor": [1.0]},
    "git-add": {"vfsd-redis": [3.0], "floor": [1.5], "juicefs": [12.0]},
    "mount-empty": {"vfsd-redis": [1.0], "juicefs": [1.0]},
}


def _texts(picture: bytes) -> list[str]:
    root = ET.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return ["".join(element.itertext()).strip() for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_picture_has_a_label_and_the_figures_of_each_workload() -> None:
    texts = _texts(chart.svg(report(TIMES)))
    for name in ("create", "read-cold", "list", "git-add"):
        assert name in texts
        assert ALL[name].what in texts
    assert {"1,000", "2,000 files/s", "250 with fsync", "3", "1.5 s", "12"} <= set(texts)
    assert {"Small files and names", "Programs"} <= set(texts)
    assert any("2 CPUs (a & b)" in text for text in texts)


def test_a_bar_that_is_too_long_ends_early_and_says_how_long_it_is() -> None:
    assert "100,000 (1000%)" in _texts(chart.svg(report(TIMES)))


def test_a_workload_without_the_floor_is_not_drawn() -> None:
    texts = _texts(chart.svg(report(TIMES)))
    assert "mount-empty" not in texts
    assert "Start" not in texts
    with pytest.raises(BenchError, match="nothing to draw"):
        chart.svg(report({"mount-empty": TIMES["mount-empty"]}))


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    file, picture = tmp_path / "report.json", tmp_path / "picture.svg"
    file.write_text(json.dumps(report(TIMES)))
    subprocess.run([sys.executable, "-m", "bench", "chart", str(file), str(picture)], check=True, timeout=60)
    assert picture.read_bytes() == chart.svg(report(TIMES))


def test_a_document_that_is_no_report_is_refused() -> None:
    with pytest.raises(BenchError, match="no report"):
        chart.svg({})
