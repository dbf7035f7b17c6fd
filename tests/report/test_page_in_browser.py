"""The page in a real browser: no error, no request, and every control does what it says.

Needs Chromium and the extra `browser`; skipped where either is missing.
"""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from superconext.report.explain import Explanation, word_spans
from superconext.report.page import PageRows, write_page
from tests.report.test_page import HOSTILE, context, rows

sync_api = pytest.importorskip("playwright.sync_api", reason="the extra browser is not installed")
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        # Containers often lack what the sandbox needs; the pages are this test's own.
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page; at the end there must have been no error and no request but its own file."""
    said, asked, contexts = [], [], []

    def open_page(made, **options):
        path = tmp_path / f"page{len(contexts)}.html"
        write_page(path, made)
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(120_000)
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: said.append(dialog.message))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for each in contexts:
        each.close()
    assert said == []
    assert len(asked) == len(contexts)


def place_of(tab, made, row):
    """Where a row's point is on the screen, from the layout alone."""
    box = tab.locator("#canvas").bounding_box()
    xs, ys = np.round(made.layout, 3).T
    scale = min((box["width"] - 30) / np.ptp(xs), (box["height"] - 30) / np.ptp(ys))
    x = (xs[row] - (xs.min() + xs.max()) / 2) * scale + box["width"] / 2
    y = ((ys.min() + ys.max()) / 2 - ys[row]) * scale + box["height"] / 2
    return box["x"] + x, box["y"] + y


def listed(tab):
    return [int(row.get_attribute("data-row")) for row in tab.locator("#rows tbody tr").all()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pointing_at_a_point_shows_its_sentence_and_its_neighbours(opened, scheme):
    made = context()
    tab = opened(made, color_scheme=scheme, viewport={"width": 1200, "height": 900})
    tab.locator("#canvas").scroll_into_view_if_needed()
    for row in (0, 17, 41):
        tab.mouse.move(*place_of(tab, made, row))
        # Waits: a busy machine draws late.
        sync_api.expect(tab.locator("#card .sentence").first).to_have_text(
            made.rows.texts[row], timeout=60_000
        )
        card = tab.locator("#card").inner_text()
        assert f"line {made.rows.lines[row]}" in card
        unit = made.train.features / np.linalg.norm(made.train.features, axis=1, keepdims=True)
        assert made.train.texts[int((unit @ made.rows.features[row]).argmax())] in card


def test_the_map_can_be_walked_by_keyboard_and_tapped(opened):
    tab = opened(context(), viewport={"width": 390, "height": 800}, has_touch=True)
    tab.focus("#canvas")
    seen = set()
    for key in ("ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        tab.keyboard.press(key)
        seen.add(tab.locator("#card .sentence").first.inner_text())
    assert len(seen) > 2
    made = context()
    tab.locator("#canvas").scroll_into_view_if_needed()
    tab.touchscreen.tap(*place_of(tab, made, 5))
    assert tab.locator("#card .sentence").first.inner_text() == made.rows.texts[5]
    # Nothing is wider than the phone.
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_search_mistakes_cells_and_slices_filter_the_table(opened):
    made = context()
    judged = made.rows
    wrong = [i for i in range(60) if judged.labels[i] != judged.predicted[i]]
    tab = opened(made)
    assert sorted(listed(tab)) == wrong
    assert listed(tab) == sorted(wrong, key=lambda i: -round(judged.confidence[i], 3))
    tab.uncheck("#wrong")
    tab.fill("#search", "ZWIN")
    assert sorted(listed(tab)) == [i for i in range(60) if "zwin" in judged.texts[i]][:60]
    tab.fill("#search", "")
    cell = next(i for i in wrong)
    k = [("neg", "pos").index(name) for name in (judged.labels[cell], judged.predicted[cell])]
    tab.click(f'[data-cell="{k[0]},{k[1]}"]')
    pairs = list(zip(judged.labels, judged.predicted, strict=True))
    assert sorted(listed(tab)) == [i for i in range(60) if pairs[i] == pairs[cell]]
    tab.click("#filters button")
    tab.click("[data-slice^='unknown,0']")
    assert tab.locator("#count").inner_text().startswith(f"{int(made.unknown[0] == 0)} of 60")
    tab.click("#filters button")
    tab.locator("#telling button").first.click()
    assert listed(tab) and tab.input_value("#search")


def test_a_click_on_a_sentence_opens_its_words_and_neighbours(opened):
    made = context()
    made.rows.texts[5] = text = "😂 had zwin lfilm"
    spans = word_spans(text)[1:]
    words = [(text[a:b], value) for (a, b), value in zip(spans, (0.1, 2.0, -1.5), strict=True)]
    one = Explanation(text, made.rows.predicted[5], 0.9, [("😂", 0.0), *words], [(0, 1), *spans])
    tab = opened(replace(made, explained={5: one}))
    tab.uncheck("#wrong")
    row = tab.locator('#rows [data-row="5"]')
    marks = [(mark.inner_text(), mark.get_attribute("class")) for mark in row.locator("mark").all()]
    assert marks == [(words[1][0], "for s3"), (words[2][0], "against s2")]
    assert row.locator(".sentence").first.inner_text() == text
    row.locator(".open").focus()
    tab.keyboard.press("Enter")
    about = row.locator(".about").inner_text()
    unit = made.train.features / np.linalg.norm(made.train.features, axis=1, keepdims=True)
    assert made.train.texts[int((unit @ made.rows.features[5]).argmax())] in about
    assert "+2.00" in about and "\u22121.50" in about
    tab.keyboard.press("Enter")
    assert row.locator(".about").count() == 0
    tab.uncheck("#words")
    assert tab.locator("#rows mark").count() == 0


def test_keys_search_clear_and_lead_from_the_map_to_the_table(opened):
    tab = opened(context())
    tab.keyboard.press("/")
    tab.keyboard.type("no such word")
    assert tab.locator("#rows [data-row]").count() == 0
    tab.keyboard.press("Escape")
    assert tab.input_value("#search") == "" and tab.locator("#rows [data-row]").count() > 0
    tab.focus("#canvas")
    tab.keyboard.press("ArrowRight")
    sentence = tab.locator("#card .sentence").first.inner_text()
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.innerText") == sentence
    assert tab.locator("#rows .about").count() == 1


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 390)])
def test_the_picture_is_the_one_that_was_looked_at(opened, tmp_path, scheme, width):
    """The drawn parts, which no font changes much: map, matrix and reliability diagram.

    After a change that is meant: `SUPERCONEXT_NEW_PICTURES=1 pytest` this file, and look.
    """
    image = pytest.importorskip("PIL.Image")
    tab = opened(context(), color_scheme=scheme, viewport={"width": width, "height": 900})
    # Part, its lines in the file, and how far it may be off: of 255, the mean over points.
    parts = (("#canvas", 96, 1.5), (".confusion tbody", 48, 8), (".large svg", 48, 4))
    pictures = []
    for part, size, _ in parts:
        tab.locator(part).screenshot(path=tmp_path / "part.png")
        pictures.append(image.open(tmp_path / "part.png").convert("RGB").resize((96, size), 4))
    looked_at = Path(__file__).with_name(f"page_{scheme}.png")
    if os.environ.get("SUPERCONEXT_NEW_PICTURES"):
        image.fromarray(np.concatenate([np.asarray(one) for one in pictures])).save(looked_at)
    expected = np.asarray(image.open(looked_at).convert("RGB"), dtype=float)
    for (part, size, tolerance), found in zip(parts, pictures, strict=True):
        off = np.abs(np.asarray(found, dtype=float) - expected[:size]).mean()
        assert off < tolerance, f"{part}: {off}"
        expected = expected[size:]


def test_a_line_around_points_lists_them(opened):
    made = context()
    tab = opened(made, viewport={"width": 1200, "height": 900})
    tab.locator("#canvas").scroll_into_view_if_needed()
    x, y = place_of(tab, made, 7)
    tab.mouse.move(x - 14, y - 14)
    tab.mouse.down()
    for dx, dy in ((14, -14), (14, 14), (-14, 14), (-14, -14)):
        tab.mouse.move(x + dx, y + dy, steps=3)
    tab.mouse.up()
    inside = []
    for row in range(60):
        px, py = place_of(tab, made, row)
        if abs(px - x) < 14 and abs(py - y) < 14:
            inside.append(row)
    assert sorted(listed(tab)) == inside and 7 in inside


def test_hostile_text_is_shown_and_does_not_run(opened):
    plain = rows(len(HOSTILE))
    judged = PageRows(HOSTILE, HOSTILE, plain.lines, HOSTILE[1:] + HOSTILE[:1], plain.confidence,
                      None, plain.features)  # fmt: skip
    made = context(rows(6), train=judged)
    made = type(made)(**{**vars(made), "rows": judged, "classes": HOSTILE[:2], "unknown": None})
    tab = opened(made)
    tab.focus("#canvas")
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp") * 3:
        tab.keyboard.press(key)
    assert tab.title() == "superconext: test"
    shown = tab.locator("#rows").inner_text()
    assert "</script><script>document.title = 'stolen'</script>" in shown and "<img src=x" in shown


def test_the_policy_stops_scripts_and_requests_that_are_not_the_page_s(browser, tmp_path):
    write_page(tmp_path / "page.html", context())
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    stopped = tab.evaluate(
        """async () => {
          const broken = [];
          const note = (event) => broken.push(event.effectiveDirective);
          document.addEventListener("securitypolicyviolation", note);
          const script = document.createElement("script");
          script.textContent = "document.title = 'stolen'";
          document.body.append(script);
          document.body.insertAdjacentHTML("beforeend", "<img src='https://example.org/x.png'>");
          await fetch("https://example.org/").catch(() => 0);
          await new Promise((done) => setTimeout(done, 100));
          return broken;
        }"""
    )
    assert {one.removesuffix("-elem") for one in stopped} == {
        "script-src",
        "img-src",
        "connect-src",
    }
    assert tab.title() == "superconext: test"
    tab.close()


def test_sentences_are_set_in_their_own_direction(opened):
    texts = ["@user هذا زوين بزاف", "had lfilm zwin بزاف", "123 !", "salam"]
    plain = rows(4)
    judged = PageRows(texts, plain.labels, plain.lines, plain.predicted, plain.confidence)
    made = context(rows(4))
    tab = opened(type(made)(**{**vars(made), "rows": judged, "unknown": None}))
    tab.uncheck("#wrong")
    tab.select_option("#order", "line")
    sides = [one.get_attribute("dir") for one in tab.locator("#rows .sentence").all()]
    assert sides == ["rtl", "ltr", "auto", "auto"]


def test_the_theme_is_switched_and_paper_is_white(opened):
    tab = opened(context(), color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(ground)
    tab.click("#theme")
    assert tab.evaluate(ground) != dark
    tab.click("#theme")
    assert tab.evaluate(ground) == dark
    tab.emulate_media(media="print")
    assert tab.evaluate(ground) == "rgb(255, 255, 255)"
    assert not tab.locator("#theme").is_visible()


def test_the_map_is_whole_on_paper(opened):
    """What is drawn has the shape of the layout on paper too, where the map has another size."""
    made = context()
    tab = opened(made, viewport={"width": 1200, "height": 900})
    tab.emulate_media(media="print")
    tab.wait_for_function("() => matchMedia('print').matches")
    wide, tall = tab.evaluate("""() => {
      const c = document.getElementById("canvas"), w = c.width, xs = [], ys = [];
      const dots = c.getContext("2d").getImageData(0, 0, w, c.height).data;
      for (let i = 3, at = 0; i < dots.length; i += 4, at++)
        if (dots[i]) { xs.push(at % w); ys.push(Math.floor(at / w)); }
      const most = (all) => all.reduce((a, b) => Math.max(a, b));
      const span = (all) => most(all) + most(all.map((one) => -one));
      return [span(xs), span(ys)]; }""")
    xs, ys = np.ptp(made.layout, axis=0)
    assert wide / tall == pytest.approx(xs / ys, rel=0.1)


NAMES = ("balance_not_updated_after_cheque_or_cash_deposit", "card_payment_wrong_exchange_rate")


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_names_without_spaces_widen_no_page(opened, width):
    train = rows(80, NAMES, seed=1)
    long = context(rows(classes=NAMES), train=train, classes=NAMES)
    page = opened(long, viewport={"width": width, "height": 800})
    page.locator("#rows .open").first.click()
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_matrix_of_many_classes_is_whole_on_paper(opened):
    names = tuple(f"a complaint about department {k:02}" for k in range(60))
    page = opened(context(rows(240, names), classes=names), viewport={"width": 700, "height": 900})
    page.emulate_media(media="print")
    ends = page.evaluate("""() => [...document.querySelectorAll(".confusion :is(th, td)")]
        .map((cell) => cell.getBoundingClientRect().right)""")
    assert max(ends) <= 700
