// One person's part without a class: draws of the model stand for the other phones.

import { picture } from "./figure.js";
import { el } from "./kit.js";
import { build } from "./nodes.js";
import { part } from "./part.js";

const { words, base, query, each } = JSON.parse(document.getElementById("data").textContent);
const MS_BETWEEN_LOOKS = 1000, SEATS = 1000;
const kept = `vitrine part ${query}`;
const mine = JSON.parse(sessionStorage.getItem(kept) ?? "null") ?? { seat: Math.floor(SEATS * Math.random()), sent: [] };
let value = each.slider?.first, newest = 0;

const own = el("section"), said = el("section"), line = el("p", "line");
line.setAttribute("role", "status");
own.setAttribute("aria-live", "polite");
const slider = el("div", "slider");
document.body.append(el("div", "asks", ...build(each.words)), own, line, slider, said, el("p", "quiet", each.alone));

async function look() {
  const number = ++newest;
  let told = {};
  try {
    const answer = await fetch(`${base}hall/alone?${query}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...mine, value }),
    });
    told = await answer.json();
  } catch {
    told = { error: words.unreachable };
  }
  if (number !== newest) return;
  line.textContent = told.error ?? (told.pending ? words.computing : "");
  if (told.pending) return void setTimeout(look, MS_BETWEEN_LOOKS);
  if (!told.part) return void mine.sent.pop();
  sessionStorage.setItem(kept, JSON.stringify(mine));
  own.replaceChildren(...part(told.part, give));
  said.replaceChildren(...picture(told.picture));
  document.documentElement.dataset.ready = mine.sent.length;
}

function give(what) {
  mine.sent.push(what);
  look();
}

if (each.slider) {
  const { low, high, step, first, label } = each.slider;
  const box = el("input"), told = el("output", "", String(first));
  Object.assign(box, { type: "range", min: low, max: high, step, value: first });
  box.addEventListener("input", () => {
    value = +box.value;
    told.textContent = box.value;
    look();
  });
  slider.append(el("label", "", label, box), told);
}
look();
