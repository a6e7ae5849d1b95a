// A lecture that was taken home: its scenes below each other, figures alive, answers under a button.

import { build } from "./nodes.js";
import { el, fill } from "./kit.js";

const payload = document.getElementById("figure").dataset.payload;
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const { about, scenes, words } = JSON.parse(new TextDecoder().decode(bytesOf(payload)));

function chart(place, data) {
  window.drawChart(place, data, { ast: true, renderer: "svg", actions: false });
}

function verdict(place, parts) {
  const bar = el("div", "bar", ...parts.map(([, share], part) => {
    const piece = el("i", `part${part % 4}`);
    piece.style.width = `${share}%`;
    return piece;
  }));
  place.append(el("p", "", parts.map(([name]) => name).join(" · ")), bar);
}

function alive(place, { component, data }) {
  const { mount, style } = components[component];
  const root = place.attachShadow({ mode: "open" });
  const sheet = el("style");
  sheet.textContent = style;
  const inner = el("div");
  root.append(sheet, inner);
  mount({ data: data.bytes ? bytesOf(data.bytes) : data, parentElement: inner, setStateValue() {}, setTriggerValue() {} });
}

const OTHERS = { chart, verdict };

function figure(shown) {
  const place = el("div", `figure ${shown.component}`);
  if (shown.covered) cover(place, true);
  return [place, () => (OTHERS[shown.component] ? OTHERS[shown.component](place, shown.data) : alive(place, shown))];
}

// A figure that answers the question above it is seen once that is answered.
function cover(place, covered) {
  place.classList.toggle("covered", covered);
  place.inert = covered;
}

function question({ question: asked, finding, answers }, figures) {
  const total = Object.values(answers).reduce((sum, count) => sum + count, 0);
  const rows = Object.entries(asked.options).map(([option, label]) => {
    const row = el("li", "", el("span", "", label));
    if (total) {
      const share = (answers[option] ?? 0) / total;
      row.style.setProperty("--share", share);
      row.append(el("b", "", fill(words.share, { share: Math.round(100 * share), count: answers[option] ?? 0 })));
    }
    return [option, row];
  });
  const texts = rows.length ? [] : Object.keys(answers).map((text) => el("li", "", text));
  const panel = el("section", "question", el("div", "asks", ...build(asked.words)), el("ol", "", ...rows.map(([, row]) => row), ...texts));
  if (finding) {
    const button = el("button", "", words.reveal);
    button.type = "button";
    button.addEventListener("click", () => {
      button.replaceWith(el("div", "measured", ...build(finding.said)));
      for (const [option, row] of rows) row.classList.toggle("right", option === finding.option);
      panel.classList.add("open");
      for (const place of figures) cover(place, false);
    });
    panel.append(button);
  } else for (const place of figures) cover(place, false); // nobody could tell the answer when the file was made
  return panel;
}

// What a class came to where every phone had a part, or what draws of the model would have.
function ofClass({ each, picture: shown, alone }) {
  const who = alone ? el("p", "quiet", each.alone) : "";
  return [el("div", "asks", ...build(each.words)), who, ...(shown ? picture(shown) : [])];
}

const main = document.getElementById("figure");
main.append(el("p", "", about));
for (const scene of scenes) {
  const figures = scene.figures.map(figure), places = figures.map(([place]) => place);
  const read = scene.sentences.map((sentence) => el("blockquote", "", sentence));
  const missing = figures.length ? "" : el("p", "quiet missing", fill(words.without, { screen: scene.screen }));
  main.append(el("article", "", el("h2", "", `${scene.number}. ${scene.title}`), el("div", "", ...build(scene.text)),
    ...read, ...(scene.each ? ofClass(scene) : []), scene.question ? question(scene, places) : "", ...places, missing));
  for (const [, draw] of figures) draw();
}
