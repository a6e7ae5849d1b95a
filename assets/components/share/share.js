// A button that copies the link of the screen, as the address bar has it; no script runs. What no link can hold is said
// beside it.
const LONGEST_TEXT = 2000; // as MOST_IN_URL of pages/ui/url.py
const SECONDS_SAID = 8;

// What is on the page and not in its link, in words.
function missing(words) {
  const typed = [...document.querySelectorAll("[data-testid=stMain] textarea, [data-testid=stMain] input[type=text]")];
  const said = [];
  if (typed.some(({ value }) => value.length > LONGEST_TEXT)) said.push(words.long);
  if (document.querySelector("[data-testid=stFileUploaderFile]")) said.push(words.file);
  if (["localhost", "127.0.0.1", "[::1]"].includes(location.hostname)) said.push(words.here);
  return said;
}

const paragraph = (textContent) => Object.assign(document.createElement("p"), { textContent });

class Share {
  constructor(parent) {
    this.root = document.createElement("div");
    this.root.className = "share";
    this.root.innerHTML = '<button type="button"></button><div role="status"></div>';
    [this.button, this.note] = this.root.children;
    this.button.addEventListener("click", () => this.copy());
    this.root.addEventListener("keydown", ({ key }) => key === "Escape" && this.hush());
    parent.append(this.root);
  }

  say(words) {
    this.words = words;
    this.button.textContent = words.button;
    this.button.title = words.title;
  }

  async copy() {
    const link = location.href;
    const lines = missing(this.words).map((line) => paragraph(line));
    try {
      await navigator.clipboard.writeText(link); // missing where the page came by http from another machine
      this.note.replaceChildren(paragraph(this.words.copied), ...lines);
      clearTimeout(this.later);
      this.later = setTimeout(() => this.hush(), 1000 * SECONDS_SAID);
    } catch {
      this.offer(link, lines);
    }
  }

  // Shows the link as selected text, which stays until it is dismissed, and copies it in the old way where that works.
  offer(link, lines) {
    clearTimeout(this.later);
    const input = Object.assign(document.createElement("input"), { readOnly: true, value: link });
    input.setAttribute("aria-label", this.words.title);
    this.note.replaceChildren(input, ...lines);
    input.select();
    const copied = document.execCommand("copy");
    input.after(paragraph(copied ? this.words.copied : this.words.by_hand));
  }

  hush() {
    clearTimeout(this.later);
    this.note.replaceChildren();
  }
}

const instances = new WeakMap();

export default function share({ data, parentElement }) {
  if (!instances.has(parentElement)) instances.set(parentElement, new Share(parentElement));
  instances.get(parentElement).say(data);
}
