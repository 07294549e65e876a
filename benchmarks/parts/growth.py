"""What figures at growing sizes say of a larger one: laws fitted to them, with the largest residual of each."""

from __future__ import annotations

import math

import numpy as np

FITS = {
    "add seconds": ("n log n", "power"),
    "add processor": ("n log n", "power"),
    "server memory": ("line",),
    "server disk": ("line",),
    "connect seconds": ("power",),
    "connect processor": ("line",),
    "connect server processor": ("power",),
    "connect peak": ("line",),
    "connect disk": ("line",),
    "exact opened": ("line",),
    "exact peak": ("line",),
    "exact milliseconds": ("line",),
    "exact processor ms": ("line",),
    "graph milliseconds": ("power",),
    "graph server ms": ("power",),
}
"""Row → the laws it is fitted by: a·n·ln n, a·n + b, or a·n^b."""


def fitted(law: str, sizes: list[float], values: list[float], at: float) -> tuple[float, float, str]:
    """(the value at a size, the largest residual as a share of a measured value, the law with its numbers)."""
    n, y = np.array(sizes, dtype=float), np.array(values, dtype=float)
    if law == "n log n":
        slope = float((y * n * np.log(n) / y**2).sum() / ((n * np.log(n) / y) ** 2).sum())  # least relative squares
        told, law_of = f"{slope:.3g} n ln n", lambda x: slope * x * np.log(x)
    elif law == "line":
        slope, base = np.polyfit(n, y, 1, w=1 / y)
        told, law_of = f"{slope:.3g} n + {base:.3g}", lambda x: slope * x + base
    else:
        power, base = np.polyfit(np.log(n), np.log(y), 1)
        told, law_of = f"{math.exp(base):.3g} n^{power:.2f}", lambda x: math.exp(base) * x**power
    return float(law_of(at)), float(np.max(np.abs(law_of(n) / y - 1))), told


def table(rows: list[dict[str, float]], towards: int) -> list[str]:
    """The figures as lines: measured sizes, then what the fits of those below give for the size they go towards."""
    below = [row for row in rows if row["chunks"] < towards]
    head = "".join(f"{int(row['chunks']):>12,}" for row in rows)
    lines = [f"{'chunks':26}{head}{f'{towards:,} by fit':>20}  residual  law"]
    for name in [one for one in rows[0] if one not in ("chunks", "queries")]:
        line = f"{name:26}" + "".join(f"{row[name]:12.3f}" for row in rows)
        laws = FITS.get(name, ()) if len(below) > 2 else ()
        fits = [fitted(law, [r["chunks"] for r in below], [r[name] for r in below], towards) for law in laws]
        ends = [f"{value:20.3f}{residual:10.0%}  {told}" for value, residual, told in fits] or [""]
        lines += [line + ends[0], *(" " * len(line) + more for more in ends[1:])]
    return lines
