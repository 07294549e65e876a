"""What every test of a page asks of it."""

import time


def sane(app):
    """The app, which ended without an uncaught error."""
    assert not app.exception, [error.value for error in app.exception]
    return app


def waited(app):
    """The page after its job is over."""
    for _ in range(100):
        sane(app.run())
        if not any(one.key == "job.cancel" for one in app.button):
            return sane(app.run())
        time.sleep(0.1)
    raise AssertionError("the run did not end")
