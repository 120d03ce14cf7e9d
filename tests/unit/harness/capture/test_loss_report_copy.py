"""The used part of a loss report is copied, also after its driver has removed the file."""

import os

from windtunnel.harness.capture.loss_report_copy import LOSS_REPORT_FILE, LossReportCopy


def test_the_used_part_is_copied_after_the_file_was_removed(tmp_path):
    file = tmp_path / LOSS_REPORT_FILE
    file.write_bytes(b"entry" + bytes(100))
    held = LossReportCopy(tmp_path)
    file.unlink()
    held.write(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"entry"


def test_a_report_that_its_driver_truncates_is_copied_up_to_its_end(tmp_path):
    file = tmp_path / LOSS_REPORT_FILE
    file.write_bytes(b"entry" * 2000)
    held = LossReportCopy(tmp_path)
    os.truncate(file, 5)
    held.write(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"entry"


def test_an_empty_report_has_an_empty_copy(tmp_path):
    (tmp_path / LOSS_REPORT_FILE).write_bytes(bytes(64))
    LossReportCopy(tmp_path).write(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b""


def test_without_a_report_there_is_no_copy(tmp_path):
    LossReportCopy(tmp_path).write(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
