"""How smoothly the film plays in headless Chromium: pictures a second, late ones, and the main thread's work for one.

Run `python -m tests.benchmarks.film`. The main thread's processor time counts more than pictures a second, which a busy
machine takes away.
"""

from playwright.sync_api import Page, sync_playwright

from tests.helpers.browser import launch
from tests.helpers.film_stage import example, staging

POINTS = (600, 1_200)
SIZES = ((1280, 800), (1920, 1080))
RUNS = ("quickrun1", "quickrun1,samebut02")
MILLISECONDS = 5_000
LATE = 25.0
TIMES = """(duration) => new Promise((done) => {
  const times = [];
  const look = (now) => {
    times.push(now);
    if (now - times[0] > duration) done(times.slice(1).map((time, k) => time - times[k]).sort((a, b) => a - b));
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def played(page: Page, address: str) -> str:
    """Play a run for some seconds and return what was measured, as one line."""
    page.goto(address)
    page.locator(".vf[data-frame='0']").wait_for()
    page.wait_for_timeout(1_500)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1_000 * next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    page.get_by_role("button", name="Play").click()
    before = busy()
    gaps = page.evaluate(TIMES, MILLISECONDS)
    work = (busy() - before) / len(gaps)
    late = sum(gap > LATE for gap in gaps)
    rate, median, most = 1_000 * len(gaps) / sum(gaps), gaps[len(gaps) // 2], gaps[int(0.95 * len(gaps))]
    return (
        f"{rate:5.1f} a second, {median:.1f}/{most:.1f} ms, {late:3d} of {len(gaps)} late, {work:4.1f} ms of work each"
    )


def main() -> None:
    """Print one line for each number of points, size of window, and one run or two."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for n_points in POINTS:
            with staging(example(n_points)) as address:
                for width, height in SIZES:
                    for runs in RUNS:
                        page = browser.new_page(viewport={"width": width, "height": height})
                        line = played(page, f"{address}/?runs={runs}&frame=0")
                        print(f"{n_points:5d} points, {width} wide, {runs.count(',') + 1} run(s): {line}", flush=True)
                        page.close()
        browser.close()


if __name__ == "__main__":
    main()
