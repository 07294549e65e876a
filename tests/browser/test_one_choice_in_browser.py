"""One eval set for all pages in Chromium: chosen in the header of one page, it stands in that of the next."""

import re

from playwright.sync_api import expect

WANTED = "Three recorded combat questions"


def header(page):
    return page.locator(".st-key-header")


def go(page, title):
    link = page.get_by_role("link", name=re.compile(f"{title}$"))
    if not link.is_visible():  # it stays open after a choice
        page.get_by_role("button", name=re.compile("More")).click()
    link.click()
    expect(page.get_by_role("heading", name=title)).to_be_visible()


def test_an_eval_set_chosen_on_tune_stands_in_the_header_and_address_of_the_next_pages(app, page):
    page.goto(f"{app}/tune")
    header(page).get_by_role("combobox", name=re.compile("Eval set")).click()
    page.get_by_role("option", name=WANTED).click()
    expect(page).to_have_url(re.compile("set=recorded-combat"))
    for title in ("Headroom",):
        go(page, title)
        expect(page).to_have_url(re.compile("set=recorded-combat"))
        expect(header(page).get_by_role("combobox", name=re.compile("Eval set"))).to_have_value(WANTED)
