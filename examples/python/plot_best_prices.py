#!/usr/bin/env python3
"""Plots the best prices and the trades of an instrument: plot_best_prices.py TAPE SYMBOL FILE

FILE ends with .svg or .png. The command prints how many rows are in the plot, as JSON. It needs the packages unitape and
matplotlib.
"""

import json
import sys

import matplotlib
import unitape

matplotlib.use("svg" if sys.argv[-1].endswith(".svg") else "agg")
from matplotlib import pyplot  # noqa: E402


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    path, symbol, file = sys.argv[1:]
    tape = unitape.open(path)
    quotes = tape.get_range("bbo", symbols=[symbol]).to_df(price_type="float")
    trades = tape.get_range("trades", symbols=[symbol]).to_df(price_type="float")
    figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
    # A price holds until the next quote.
    for column, label in (("bid_px_00", "best bid"), ("ask_px_00", "best ask")):
        axes.step(quotes["ts_event"], quotes[column], where="post", linewidth=0.9, label=label)
    axes.scatter(trades["ts_event"], trades["price"], s=9, color="black", label="trades", zorder=3)
    axes.set_title(symbol.replace("$", r"\$"))
    axes.set_xlabel("event time, UTC")
    axes.set_ylabel("price")
    axes.legend(loc="best")
    figure.savefig(file)
    print(json.dumps({"symbol": symbol, "quotes": len(quotes), "trades": len(trades)}))


if __name__ == "__main__":
    main()
