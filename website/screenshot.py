"""Makes the README's screenshot: the player of the report, with a trial that the place
learner passed.

python -m website.screenshot
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import cheesebench

PICTURE = Path(__file__).parents[1] / "docs/assets/player.png"
#: Size of the screenshot in pixels. A README is 900 pixels wide.
WIDTH, HEIGHT = 1366, 640
SUBJECT, TRIAL, STEP = 0, 9, 9


def take(picture: Path) -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as tools:
        page = Path(folder, "report.html")
        run = cheesebench.run(
            "place-learner",
            "barnes_maze",
            design="cohort",
            subjects=1,
            seed=0,
            results=folder,
            progress=False,
        )
        page.write_text(run.report("html"), encoding="utf-8")
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light"
        )
        tab.goto(f"{page.as_uri()}#barnes_maze/{SUBJECT}/{TRIAL}/{STEP}")
        tab.wait_for_selector("#trials .screen, #trials canvas, #trials pre")
        tab.wait_for_timeout(500)
        trial = tab.locator("#pick-trial option:checked").inner_text()
        if not trial.startswith(f"✔ {TRIAL}:"):
            sys.exit(f"The page shows trial {trial}, not one that passed.")
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take(PICTURE)
