"""Files for the user: whole or not at all, whoever else writes."""

import os
import threading

import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.files.output_files import make_folder, write_by, write_file


def test_threads_that_write_one_file_leave_one_of_their_texts(tmp_path):
    path, texts, problems = tmp_path / "k.ptx", ["a" * 200_000, "b" * 100_000, "c" * 50_000], []

    def work(text):
        try:
            for _ in range(20):
                write_file(str(path), text)
        except CompileError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] and path.read_text() in texts
    assert os.listdir(tmp_path) == ["k.ptx"]


def test_a_writer_that_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "k.ptx"
    path.write_text("before")
    path.chmod(0o640)

    def half(file):
        file.write(b"half")
        raise OSError("the rest does not fit")

    with pytest.raises(CompileError, match=r"E1007.*k.ptx': the rest does not fit"):
        write_by(str(path), half)
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["k.ptx"]
    write_file(str(path), "after")
    assert path.read_text() == "after" and path.stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_is_written_to_and_not_replaced(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_file(str(pipe), "text")
    reader.join()
    assert got == ["text"] and pipe.is_fifo()


@pytest.mark.parametrize("call", [lambda path: write_file(path, "x"), make_folder])
def test_a_path_that_can_be_none(call):
    with pytest.raises(CompileError, match=r"E1007.*embedded null byte"):
        call("a\0b/c")
