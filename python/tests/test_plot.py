"""The plot of the examples, by itself and in the demo."""

import json
import os
import pathlib
import subprocess
import sys

from conftest import BINARY, ROOT, cat_rows

PLOT = ROOT / "examples" / "python" / "plot_best_prices.py"


def test_the_plot_has_the_rows_of_the_tape(tapes, tmp_path):
    tape, file = tapes["market"], tmp_path / "plot.svg"
    symbol = cat_rows(tape, "bbo", "--limit", "1")[0]["symbol"]
    ran = subprocess.run([sys.executable, PLOT, tape, symbol, file], capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    rows = {schema: len(cat_rows(tape, schema, "--instr", symbol)) for schema in ("bbo", "trades")}
    assert json.loads(ran.stdout) == {"symbol": symbol, "quotes": rows["bbo"], "trades": rows["trades"]}
    assert rows["bbo"] > 1 and "<svg" in file.read_text()


def test_the_demo_plots_where_python_can(tmp_path):
    bin_folder = pathlib.Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    demo = [BINARY, "demo", "--seconds", "1", "--dir", tmp_path / "demo", "--json"]
    ran = subprocess.run(demo, capture_output=True, env=environment)
    assert ran.returncode == 0, ran.stderr.decode()
    story = json.loads(ran.stdout)
    assert pathlib.Path(story["answers"]["plot"]).stat().st_size > 1000
