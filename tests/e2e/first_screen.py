"""The first screen of a page: how far down its picture stands, and how much prose stands before it."""

from playwright.sync_api import Page

PAGES = (
    "tokens",
    "embeddings",
    "positions",
    "masks",
    "attention",
    "feed_forward",
    "norm",
    "why",
    "encoder",
    "translation",
    "bert",
    "gpt",
    "before",
)
MOST_LINES = 2
FOLD = 800
SEEN = """
(firstPart) => {
  const inside = (root) => [...root.querySelectorAll("*")].flatMap((one) =>
    one.shadowRoot ? [one, ...inside(one.shadowRoot)] : [one]);
  const main = document.querySelector(".stMainBlockContainer");
  const box = (one) => one.getBoundingClientRect();
  const large = (one) => box(one).width > 100 && box(one).height > 20;
  const drawn = "canvas, svg, .vt-rows, .tinted, .tr-line, .masks-batch, .masked-words, [data-testid=stVegaLiteChart]";
  const pictures = window.pictures = () => inside(main).filter((one) => one.matches(drawn) && large(one));
  const order = (a, b) => box(a).top - box(b).top || box(b).height - box(a).height;
  const first = window.firstPicture = () => pictures().sort(order)[0];
  const words = "[data-testid=stMarkdown] p, [data-testid=stCaptionContainer] p, [data-testid=stAlert] p";
  const asked = "[class*=st-key-cover_], [class*=st-key-question_]";
  const titles = (one) => one.childElementCount === 1 && one.firstElementChild.matches("strong");
  const above = () => {
    const picture = box(first());
    return [...main.querySelectorAll(words)].filter((one) => !one.closest("[data-testid=stExpander], button, label"))
      .filter((one) => box(one).bottom <= picture.top + 4 && box(one).right > picture.left && box(one).height > 8)
      .filter((one) => !titles(one) && (firstPart || !one.closest(asked)));
  };
  const linesOf = (one) => {
    const high = parseFloat(getComputedStyle(one).lineHeight);
    const count = Math.round(box(one).height / high);
    return Array.from({ length: count }, (_, line) => Math.round((box(one).top + line * high) / 12));
  };
  const another = main.querySelector("[class*=st-key-needs_]");  // the part reads a model that is not open
  if (!first() && another) return { third: 0, lines: 0, said: [] };
  const picture = box(first());
  return {
    third: picture.top + (firstPart ? picture.height : Math.min(picture.height, 450)) / 3,
    lines: new Set(above().flatMap(linesOf)).size, // what stands side by side is one line
    said: above().map((one) => one.textContent),
  };
}
"""


def low(page: Page, name: str, *, first_part: bool) -> list[str]:
    """Say what keeps the first picture from the first screen; in later parts, besides the question that covers it."""
    seen = page.evaluate(SEEN, first_part)
    wrong = []
    if seen["third"] > FOLD:
        wrong.append(f"{name}: the picture's upper third ends at {seen['third']:.0f}")
    if seen["lines"] > MOST_LINES:
        wrong.append(f"{name}: {seen['lines']} lines of prose before the picture: {seen['said']}")
    return wrong
