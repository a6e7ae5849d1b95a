"""A page in the projector's frame: its figures and its box of text; the rest is the lecturer's to say."""

from pages.kit.url import current, keep

HALL = "hall"  # in the link of a frame
HALL_HEIGHT = 1.3, 360  # of a chart there: as a share of its height on a page, and at most, in pixels


def in_hall() -> bool:
    """Tell whether the page is shown in the projector's frame; keeps it so from page to page."""
    if current(HALL) != "1":
        return False
    keep(HALL, "1", "")
    return True
