"""Files are written whole or not at all, and nobody else's file is overwritten."""

import errno
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from privileges import without_privileges

from meterveil.data import outputs
from meterveil.errors import InputError


def full_disk(temporary):
    temporary.write_text("half")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_could_not_be_finished_leaves_the_old_one_and_no_litter(tmp_path):
    path = outputs.write_text(tmp_path / "a.txt", "old")

    with pytest.raises(InputError, match=r"cannot write .*a\.txt: No space left on device"):
        outputs.write_whole(path, full_disk)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_an_interrupt_while_writing_leaves_no_litter(tmp_path):
    def stop(temporary):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outputs.write_whole(tmp_path / "a.txt", stop)
    assert list(tmp_path.iterdir()) == []


def test_a_result_of_several_files_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    names = ("a.txt", "b.txt", "c.txt")
    writers = {tmp_path / name: outputs.text_writer(f"old {name}") for name in names}
    outputs.write_all(writers)
    broken = {**writers, tmp_path / "a.txt": outputs.text_writer("new"), tmp_path / "c.txt": full_disk}
    with pytest.raises(InputError, match=r"cannot write .*c\.txt: No space left on device"):
        outputs.write_all(broken)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {name: f"old {name}" for name in names}


def test_a_check_makes_no_folder(tmp_path):
    path = tmp_path / "new" / "out"
    assert outputs.folder(path, ["a.txt"]) == path
    assert list(tmp_path.iterdir()) == []
    outputs.write_text(path / "a.txt", "x")
    assert (path / "a.txt").read_text() == "x"


def test_a_place_that_may_not_be_written_is_refused_before_the_work():
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        with without_privileges(), pytest.raises(InputError, match=r"cannot write .*out: Permission denied"):
            outputs.folder(Path(name) / "new" / "out", ["a.txt"])


def test_a_written_file_may_be_read_by_those_who_may_read_any_new_file(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    assert outputs.write_text(tmp_path / "a.txt", "x").stat().st_mode == plain.stat().st_mode


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path):
    (tmp_path / "day.html").write_text("my holiday")
    with pytest.raises(InputError, match=r"holds day\.html that meterveil did not write"):
        outputs.folder(tmp_path, ["day.html", "summary.json"])


def test_earlier_files_of_ours_are_replaced(tmp_path):
    outputs.write_text(tmp_path / "day.html", '<meta name="generator" content="meterveil 0.1.0">')
    outputs.write_text(tmp_path / "summary.json", json.dumps({"format": "meterveil-simulation-1"}))
    table = pa.table({"load_w": [1.0]}).replace_schema_metadata({"generator": "meterveil"})
    outputs.write_whole(tmp_path / "trace.parquet", lambda temporary: pq.write_table(table, temporary))
    outputs.folder(tmp_path, ["day.html", "summary.json", "trace.parquet"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("day.html", "<p>how meterveil compares</p>"),
        ("summary.json", '{"my notes": "compare with meterveil"}'),
        ("summary.json", '{"format": "notes on meterveil"}'),
        ("summary.json", '["meterveil-simulation-1"]'),
        ("summary.json", "{ meterveil-"),
        pytest.param("summary.json", "[" * 100_000, id="nested beyond all measure"),
        ("trace.parquet", "meterveil"),
        ("trace.csv", "meterveil\n"),
    ],
)
def test_a_file_that_only_mentions_us_is_not_ours(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"holds {name} that meterveil did not write"):
        outputs.folder(tmp_path, [name])


def test_a_folder_in_the_place_of_a_file_is_not_ours(tmp_path):
    (tmp_path / "day.html").mkdir()
    with pytest.raises(InputError, match="did not write"):
        outputs.folder(tmp_path, ["day.html"])


def test_an_output_folder_that_is_a_file_or_lies_in_one_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; give a folder"):
        outputs.folder(tmp_path / "file", [])
    with pytest.raises(InputError, match=r"cannot write .*: Not a directory"):
        outputs.folder(tmp_path / "file" / "out", [])
