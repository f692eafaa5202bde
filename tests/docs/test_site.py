"""The site, in a browser: it is opened, searched and followed as a reader would; ``make docs`` builds it before."""

import http.server
import os
import threading
from functools import partial
from pathlib import Path

import pytest

webdriver = pytest.importorskip("selenium.webdriver")
support = pytest.importorskip("selenium.webdriver.support.ui")
SITE = Path(os.environ.get("HANDLAX_SITE", "build/site"))
WIDTHS = {"wide": (1280, 1000), "narrow": (400, 800)}
pytestmark = pytest.mark.site


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=WIDTHS)
def browser(request):
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "SEVERE"})
    driver = webdriver.Chrome(options=options)
    driver.set_page_load_timeout(60)
    driver.set_window_size(*WIDTHS[request.param])
    driver.width_name = request.param
    yield driver
    driver.quit()


def picture(browser, name):
    folder = SITE / "_pictures"
    folder.mkdir(exist_ok=True)
    browser.save_screenshot(str(folder / f"{name}-{browser.width_name}.png"))
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth"), "too wide"


def wait_for(browser, selector):
    waiting = support.WebDriverWait(browser, 30)
    return waiting.until(lambda driver: driver.find_elements("css selector", selector))


def test_a_reader_finds_vmap(browser, address):
    browser.get(f"{address}index.html")
    assert "handlax" in browser.title
    picture(browser, "index")
    browser.get(f"{address}search.html?q=vmap")
    results = wait_for(browser, "#search-results li a")
    assert any("vmap" in found.text for found in results)
    picture(browser, "search")


def test_links_lead_from_page_to_page(browser, address):
    browser.get(f"{address}index.html")
    for selector, words in (
        ("article a[href='tutorial/handler.html']", "handler"),
        ("article a.glossary", "Glossary"),
        (".sidebar-tree a[href^='explanation/']", ""),
    ):
        links = wait_for(browser, selector)
        browser.execute_script("arguments[0].click()", links[0])
        assert words in wait_for(browser, "h1")[0].text
    picture(browser, "third")


def test_the_reference_shows_the_whole_of_a_name(browser, address):
    browser.get(f"{address}reference/handlax.lax.html#handlax.lax.scan")
    text = browser.execute_script("return document.getElementById('handlax.lax.scan').parentElement.innerText")
    assert all(part in text for part in ("init: C,", "length: int | None = None", "In JAX: jax.lax.scan.", ">>> "))
    assert not [entry for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
    picture(browser, "scan")


def test_a_notebook_is_shown_with_its_outputs(browser, address):
    outputs = Path("docs/tutorial/notebook.ipynb").read_text().count(r'"<div class=\"hx-page\"')
    browser.get(f"{address}tutorial/notebook.html")
    assert len(wait_for(browser, ".hx-page")) == outputs > 5
    assert browser.find_element("css selector", ".hx-page svg.values image").size["width"] == 128
    picture(browser, "notebook")
