"""The Python of the page runs, one block after the other, on the tape that the page makes."""

import re
import shutil
import subprocess

from conftest import BINARY, ROOT


def test_the_blocks_of_the_page_run(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    commands = next(text for kind, text in blocks if kind == "console" and "consolidate" in text)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "unitape").symlink_to(shutil.which(BINARY))
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    monkeypatch.chdir(tmp_path)
    subprocess.run(re.sub(r"^\$ ", "", commands, flags=re.MULTILINE), shell=True, check=True, capture_output=True)
    names = {}
    python = [text for kind, text in blocks if kind == "python"]
    assert len(python) == 4
    for text in python:
        exec(compile(text, "python.md", "exec"), names)
    assert names["frame"].height == 2
    assert "unknown_schema call no schema `trade`; did you mean `trades`?" in capsys.readouterr().out
