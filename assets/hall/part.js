// A person's own part of an experiment: what it is, what is asked, and what came; a phone's or that of one alone.

import { el } from "./kit.js";

function button(label, act, className = "") {
  const made = el("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function range(label, least, most, step, first, say) {
  const box = el("input"), told = el("output", "", say(first));
  Object.assign(box, { type: "range", min: least, max: most, step, value: first });
  box.setAttribute("aria-label", label);
  box.addEventListener("input", () => {
    told.textContent = say(+box.value);
    box.setAttribute("aria-valuetext", say(+box.value));
  });
  return [box, told];
}

const ASKS = {
  tap: ({ label }, give) => [button(label, () => give(null), "main")],
  options: ({ options }, give) => options.map(([value, label]) => button(label, () => give(value))),
  text({ label, longest, sure, how_sure: how }, give) {
    const box = el("input", "word");
    box.maxLength = longest;
    box.autocapitalize = "none";
    box.autocomplete = "off";
    box.setAttribute("aria-label", label);
    const shares = sure.map(([share, told]) => button(told, () => (box.value.trim() ? give([box.value.trim(), share]) : box.focus())));
    return [el("label", "", label, box), el("p", "", how), el("div", "shares", ...shares)];
  },
  number({ label, first, send }, give) {
    const [box, told] = range(label, 0, 1, 0.01, first, (value) => `${Math.round(100 * value)}%`);
    return [el("label", "", label, box), told, button(send, () => give(+box.value), "main")];
  },
  axes({ axes, send }, give) {
    const boxes = axes.map(([low, high]) => [low, high, ...range(`${low} – ${high}`, -1, 1, 0.05, 0, (value) => value.toFixed(2))]);
    const lines = boxes.map(([low, high, box]) => el("label", "axis", el("span", "", low), box, el("span", "", high)));
    return [...lines, button(send, () => give(boxes.map(([, , box]) => +box.value)), "main")];
  },
};

// The part as nodes; `give` is called with what the person says.
export function part({ lines, ask, results }, give) {
  const asked = ask ? [el("div", "options", ...ASKS[ask.type](ask, give))] : [];
  const came = results.length ? [el("ol", "came", ...results.map((line) => el("li", "", line)))] : [];
  return [...lines.map((line, place) => el("p", place ? "" : "given", line)), ...asked, ...came];
}
