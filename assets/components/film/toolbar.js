// What is chosen for every map at once: the projection, whether mistakes are marked; and the table of numbers.
// Next: teller.js.

import { el } from "../matrix/readout.js";
import { frameTable } from "./record.js";

export class Toolbar {
  // look: what the maps show; changed: called after a choice.
  constructor(look, changed) {
    const tool = (name, action) => {
      const node = el("button", `vf-switch vf-${name}`);
      node.type = "button";
      node.addEventListener("click", () => {
        action();
        changed();
      });
      return node;
    };
    this.methods = Object.fromEntries(["tsne", "pca"].map((name) => [name, tool(name, () => (look.method = name))]));
    this.mistakes = tool("mistakes", () => (look.mistakes = !look.mistakes));
    this.opener = tool("table-tool", () => this.table.classList.toggle("vf-unseen"));
    this.group = el("span", "vf-group", ...Object.values(this.methods));
    this.group.setAttribute("role", "group");
    this.root = el("span", "vf-tools", this.group, this.mistakes, this.opener);
    this.table = el("div", "vf-table vf-unseen");
  }

  lay(reels, look, words, pointed) {
    for (const [name, node] of Object.entries(this.methods)) {
      node.textContent = words[`method_${name}`];
      node.title = words[`method_${name}_title`];
      node.setAttribute("aria-pressed", String(look.method === name));
    }
    this.mistakes.textContent = words.mistakes;
    this.mistakes.title = words.mistakes_title;
    this.mistakes.setAttribute("aria-pressed", String(look.mistakes));
    this.group.setAttribute("aria-label", words.method);
    for (const node of [this.group, this.mistakes]) node.hidden = !pointed;
    const shown = !this.table.classList.contains("vf-unseen");
    this.opener.textContent = words[shown ? "table_hide" : "table_show"];
    this.opener.setAttribute("aria-expanded", String(shown));
    const key = reels.map(({ id, frames }) => `${id} ${frames.length}`).join();
    if (key === this.key) return;
    this.key = key;
    this.table.replaceChildren(...reels.map((reel) => frameTable(reel, words)));
  }
}
