"""What the benchmarks of a page share: when a key or a click came, when the figure was painted, and the verdict.

Read next: keystroke.py.
"""

import statistics

LISTEN = """
() => {
  window.vitrinePainted = [];
  new PerformanceObserver((list) => {
    for (const mark of list.getEntries()) {
      if (mark.name === "vitrine-matrix-painted") window.vitrinePainted.push([mark.detail.version, mark.startTime]);
    }
  }).observe({ type: "mark" });
  for (const kind of ["keydown", "click"]) {
    window.addEventListener(kind, (event) => { window.vitrineActed = event.timeStamp; }, true);
  }
}
"""
ACTED = "() => window.vitrineActed"


def told(what: str, times: list[float], bound: float) -> bool:
    """Print the median and the 95th percentile of milliseconds, and return whether the bound is met."""
    times = sorted(times)
    p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
    met = p95 <= bound
    print(
        f"{what}: median {statistics.median(times):.0f} ms, "
        f"95th percentile {p95:.0f} ms <= {bound:g} {'ok' if met else 'MISSED'}"
    )
    return met
