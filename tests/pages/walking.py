"""From page to page through AppTest, as a browser goes."""


def sane(app):
    """The app, which ended without an uncaught error."""
    assert not app.exception, [error.value for error in app.exception]
    return app


def go(app, page, **link):
    """To another page: the address starts empty, or is that of a link."""
    app.query_params.clear()
    for name, value in link.items():
        app.query_params[name] = value
    return sane(app.switch_page(f"pages/{page}.py").run(timeout=120))
