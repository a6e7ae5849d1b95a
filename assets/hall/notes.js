// The lecturer's own window: notes, what comes next, a clock, and the class's answers; it follows the projector.

import { build } from "./nodes.js";
import { el, fill } from "./kit.js";
import { post } from "./room.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { words, scenes } = data;
const MS_OF_A_SECOND = 1000;
const channel = new BroadcastChannel("vitrine lecture");
const begun = Date.now();
let now = null; // what the projector said last: { at, stage, finding, room }

const ask = (what, rest = {}) => channel.postMessage({ ask: what, lecture: data.name, ...rest });

function button(label, act, className = "") {
  const made = el("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

const clock = el("p", "clock");
const place = el("h1");
const notes = el("section", "notes");
const following = el("section", "following");
const answers = el("section", "answers");
const steps = el("nav", "",
  button(words.back, () => ask("step", { by: -1 })),
  button(words.next, () => ask("step", { by: 1 }), "main"),
  button(words.reveal, () => ask("reveal", { by: 1 })),
  button(words.reveal_back, () => ask("reveal", { by: -1 })),
  button(words.dark, () => ask("dark")),
);
const list = el("select");
list.setAttribute("aria-label", words.scenes);
list.append(...scenes.map(({ title }, place) => new Option(`${place + 1}. ${title}`, place + 1)));
list.addEventListener("change", () => ask("go", { number: +list.value }));
document.body.append(el("header", "", place, clock), steps, list, el("div", "columns", el("div", "", notes, following), answers));

function tick() {
  const passed = Math.floor((Date.now() - begun) / MS_OF_A_SECOND);
  const two = (number) => String(number).padStart(2, "0");
  const time = new Date();
  clock.textContent = fill(words.clock, {
    time: `${two(time.getHours())}:${two(time.getMinutes())}`,
    passed: `${two(Math.floor(passed / 60))}:${two(passed % 60)}`,
    minutes: data.minutes,
  });
}

function show() {
  const scene = scenes[now.at - 1], next = scenes[now.at];
  place.textContent = `${now.at}/${scenes.length} ${scene.title}`;
  list.value = now.at;
  notes.replaceChildren(el("h2", "", words.notes), ...build(scene.notes));
  following.replaceChildren(el("h2", "", next ? fill(words.then, { title: next.title }) : words.last), ...(next ? build(next.text) : []));
  answers.replaceChildren(...(scene.question ? asked(scene) : []), ...(scene.each ? ofClass(scene) : []), ...room());
}

function ofClass({ each }) {
  const shown = now.room?.state?.scene === now.at ? now.room.state.class : null;
  const said = shown?.picture?.said ?? [];
  return [el("h2", "", words[`stage_${now.stage}`]), ...build(each.words), ...said.map((line) => el("p", "measured", line))];
}

function asked(scene) {
  const state = now.room?.state;
  const counts = state?.scene === now.at ? state.counts ?? {} : {};
  const rows = Object.entries(scene.question.options ?? {}).map(([option, label]) =>
    el("li", now.finding?.option === option ? "right" : "", el("span", "", label), el("b", "", now.room ? String(counts[option] ?? 0) : "")));
  const parts = [el("h2", "", words[`stage_${now.stage}`]), ...build(scene.question.words), el("ol", "", ...rows)];
  if (now.finding) parts.push(el("div", "measured", ...build(now.finding.said)));
  for (const { id, text } of state?.texts ?? []) {
    const picked = state.picked === text;
    parts.push(el("p", "sent", el("span", "", text), button(picked ? words.unpick : words.pick, () => ask("pick", { answer: picked ? null : id }))));
  }
  return parts;
}

function room() {
  if (!now.room) return [el("h2", "", words.room), button(words.open_room, () => ask("open"))];
  const { code, link, state } = now.room;
  const files = [saved(words.csv, "answers", `${code}.csv`), saved(words.take_home, "home", `${data.name}.html`)];
  const close = button(words.close_room, () => confirm(words.sure_close) && ask("close"));
  return [el("h2", "", words.room), el("p", "", `${code} · ${link}`), el("p", "", fill(words.phones, { phones: state?.phones ?? 0 })),
    button(words.show_code, () => ask("open")), ...files, close];
}

// A button that asks the room for a file and saves it.
function saved(label, what, name) {
  const made = button(label, async () => {
    made.disabled = true;
    const { status, file, error } = await post(data.base, `${now.room.code}/${what}`, { secret: now.room.secret });
    made.disabled = false;
    if (status !== 200) return void alert(error ?? words.unreachable);
    const link = el("a");
    link.href = URL.createObjectURL(file);
    link.download = name;
    link.click();
  });
  return made;
}

channel.addEventListener("message", ({ data: message }) => {
  if (message.ask || message.lecture !== data.name) return;
  now = message;
  show();
});
const KEYS = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 };
addEventListener("keydown", (event) => {
  if (event.target.closest("button, select, a") && event.key === " ") return;
  if (KEYS[event.key] && !event.target.closest("select")) {
    event.preventDefault();
    ask("step", { by: KEYS[event.key] });
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    if (event.target.closest("select")) return;
    event.preventDefault();
    ask("reveal", { by: event.key === "ArrowDown" ? 1 : -1 });
  } else if (event.key.toLowerCase() === "b") ask("dark");
});
setInterval(tick, MS_OF_A_SECOND);
tick();
ask("hello");
