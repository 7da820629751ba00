"""The records of the command, against docs/records.schema.json."""

import json
import os
import subprocess
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[2]

LEARNERS = """protocol = 1
[[learner]]
name = "wrong"
command = "sh -c 'seq 1 1000 >$1' sh {scores} {train} {test}"
[[learner]]
name = "constant"
command = "sh -c 'sed 1d $1 | sed s/.*/-9/ >$2' sh {test} {scores} {train} {k}"
batch = true
"""


def validator():
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "records.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_kept_records_fit_the_schema():
    check = validator()
    for path in sorted((ROOT / "fuzz/corpus/records").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            check.validate(json.loads(line))


def test_records_of_a_comparison_fit_the_schema(tmp_path):
    program = os.environ.get("GMM_BMM")
    if not program:
        pytest.skip("GMM_BMM does not name the command")
    check = validator()
    rows = numpy.random.default_rng(1).normal(size=(120, 4))
    numpy.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c,d", comments="")
    (tmp_path / "learners.toml").write_text(LEARNERS)
    words = "compare --data rows.csv --k 1,2 --folds 2 --seeds 2 --algos all --learners learners.toml --out out --em-restarts 1"
    subprocess.run([program, *words.split()], cwd=tmp_path, check=True, capture_output=True)
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    for record in records:
        check.validate(record)
    assert {record["kind"] for record in records} == {"run", "data", "cell", "curve"}
    assert any("failure" in record for record in records)
    assert not check.is_valid({**records[0], "unknown": 1})
