"""Draws one curve of growth: `python -m bench.draw_growth RESULTS PICTURE`, in an environment that has matplotlib."""

import json
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from bench.load import Measurement

PANELS = {
    "hops_a_second": "hops a second, 64 chains in flight",
    "memory_mib": "memory, MiB",
    "disk_mib": "files, MiB",
    "start_s": "start, s",
}
HEADROOM = 1.15
INK, LINE = "#57606a", "#0969da"  # Readable on a light page and on a dark one


def draw(results: Path, picture: Path) -> int:
    """Four panels over one axis; the picture holds no date, so that equal figures give equal bytes."""
    found = json.loads(results.read_text("utf-8"))
    counts = [point["count"] for point in found["points"]]
    style = {
        "svg.hashsalt": "growth",
        "svg.fonttype": "none",
        "text.color": INK,
        "axes.labelcolor": INK,
        "axes.edgecolor": INK,
    }
    with mpl.rc_context({**style, "xtick.color": INK, "ytick.color": INK, "font.size": 9}):
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        for axis, (name, title) in zip(figure.subplots(2, 2, sharex=True).flat, PANELS.items(), strict=True):
            values = [point[name] for point in found["points"]]
            axis.plot(counts, values, color=LINE, marker="o", markersize=4)
            axis.set(title=title, xscale="log", xticks=counts[::2])
            if name == "disk_mib":
                axis.set_yscale("log")  # the files grow as the messages do
            else:
                axis.set_ylim(0, max(values) * HEADROOM)
            axis.xaxis.set_major_formatter("{x:,.0f}")
            axis.minorticks_off()
            axis.grid(visible=True, color=INK, alpha=0.2)
            axis.spines[["top", "right"]].set_visible(False)
        figure.supxlabel(found["over"], fontsize="medium")
        figure.savefig(picture, transparent=True, metadata={"Date": None})
    return len(counts)


if __name__ == "__main__":
    print(Measurement("drawn", "points", draw(Path(sys.argv[1]), Path(sys.argv[2]))).line())
