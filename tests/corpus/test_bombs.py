"""Files made to exhaust memory or time are refused, in a process whose processor time and peak memory are measured."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

SECONDS, MEGABYTES = 2.0, 300
CHILD = Path(__file__).with_name("bomb_child.py")
ROOT = Path(__file__).parents[2]

YAML_BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


def csv_of_a_million_rows(path):
    with path.open("w") as file:
        file.write("id,text\n")
        for start in range(0, 1_100_000, 10_000):
            file.write("".join(f"r{row},text\n" for row in range(start, start + 10_000)))


def csv_of_one_huge_field(path):
    path.write_text('id,text\n1,"' + "a" * 40_000_000 + '"\n')


def csv_of_many_columns(path):
    path.write_text(",".join(f"c{n}" for n in range(200_000)) + "\n" + ",".join("x" * 200_000) + "\n")


def csv_with_an_unclosed_quote(path):
    path.write_text('id,text\n1,"' + "line\n" * 4_000_000)


def sparse_csv(path):
    with path.open("wb") as file:
        file.write(b"id,text\n")
        file.truncate(2_000_000_000_000)


def zip_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for number in range(20):
            bundle.writestr(f"{number}.md", b"0" * 10_000_000)


def parquet_bomb(path):
    """Two hundred million equal texts in a few hundred bytes a row group."""
    table = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 5_000_000, pa.int32()), ["x" * 1000])})
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(40):
            writer.write_table(table)


def parquet_of_long_texts(path):
    """A few rows that unpack to gigabytes."""
    table = pa.table({"text": ["x" * 50_000_000]})
    with pyarrow.parquet.ParquetWriter(path, table.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(40):
            writer.write_table(table)


def parquet_of_a_dictionary(path):
    """Four thousand times one text of a million characters, in ten thousand bytes."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 4_000, pa.int32()), ["x" * 1_000_000])
    pyarrow.parquet.write_table(pa.table({"text": texts}), path, compression="zstd")


def markdown_of_headers(path):
    path.write_text("# a\n" * 900_000)


def markdown_of_bold_lines(path):
    path.write_text("**a**\n\n" * 700_000)


def api_of_aliases(path):
    path.write_text("openapi: 3.0.0\n" + YAML_BOMB)


def deep_api(path):
    path.write_text('{"openapi": "3.0.0", "paths": ' + "[" * 200_000 + "]" * 200_000 + "}")


def deep_yaml_api(path):
    path.write_text("openapi: 3.0.0\npaths: " + "[" * 100_000)


def deep_jsonl(path):
    path.write_text('{"id": "a", "text": "b", "metadata": ' + '{"a":' * 200_000 + "1" + "}" * 200_000 + "}\n")


def sparse_jsonl(path):
    with path.open("wb") as file:
        file.truncate(2_000_000_000_000)


def binary_markdown(path):
    path.write_bytes(b"## a\n\x00" * 1000)


BOMBS = [
    (csv_of_a_million_rows, "a.csv", "auto"),
    (csv_of_one_huge_field, "a.csv", "auto"),
    (csv_of_many_columns, "a.csv", "auto"),
    (csv_with_an_unclosed_quote, "a.csv", "auto"),
    (sparse_csv, "a.csv", "auto"),
    (zip_bomb, "a.csv", "auto"),
    (zip_bomb, "a.parquet", "auto"),
    (zip_bomb, "a.md", "auto"),
    (zip_bomb, "a.zip", "auto"),
    (parquet_bomb, "a.parquet", "auto"),
    (parquet_of_long_texts, "a.parquet", "auto"),
    (parquet_of_a_dictionary, "a.parquet", "auto"),
    (markdown_of_headers, "a.md", "auto"),
    (markdown_of_bold_lines, "a.md", "auto"),
    (api_of_aliases, "a.yaml", "openapi"),
    (deep_api, "a.json", "openapi"),
    (deep_yaml_api, "a.yaml", "openapi"),
    (deep_jsonl, "a.jsonl", "auto"),
    (sparse_jsonl, "a.jsonl", "auto"),
    (binary_markdown, "a.md", "auto"),
]


QUICK = (parquet_of_a_dictionary, deep_jsonl)  # far below the limit of time, on a busy machine too


@pytest.mark.parametrize(
    ("make", "name", "kind"),
    [
        pytest.param(*bomb, marks=() if bomb[0] in QUICK else pytest.mark.slow, id=f"{bomb[0].__name__}-{bomb[1]}")
        for bomb in BOMBS
    ],
)
def test_a_bomb_is_refused_in_bounded_time_and_memory(tmp_path, make, name, kind):
    make(tmp_path / name)
    command = [sys.executable, str(CHILD), str(tmp_path / name), kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=120)
    assert run.returncode == 0, run.stderr[-500:]
    said, seconds, megabytes = json.loads(run.stdout)
    assert said.startswith(("InputError", "RecordError")), said
    assert "\n" not in said
    assert len(said) < 500
    assert seconds <= SECONDS, said
    assert megabytes <= MEGABYTES, said
