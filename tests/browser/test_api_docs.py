"""The page of the REST interface, under the strict content policy."""


def test_the_interface_is_shown_and_tried_out_in_a_signed_in_browser(desk, knowledge):
    page = desk.log_in("agent", "/api/v1/docs")
    page.locator("#operations-tag-webhooks").wait_for()  # the last of Nescio's own
    page.locator("#operations-tag-search").click()
    page.get_by_text("/api/v1/search").wait_for()
    page.locator("#operations-search-search .opblock-summary-control").click()
    page.get_by_role("button", name="Try it out").click()
    page.locator("#operations-search-search textarea").fill(
        '{"question": "Who won the cup?"}'
    )
    page.get_by_role("button", name="Execute").click()

    answered = page.locator(".live-responses-table tbody .response-col_status")
    answered.wait_for()
    assert answered.inner_text().startswith("200")
