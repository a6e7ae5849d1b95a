// The page on a phone: the scene's title and question, one tap to answer, then what the class and the model say.

import { build } from "./nodes.js";
import { el, fill } from "./kit.js";
import { follow, post } from "./room.js";

const data = JSON.parse(document.getElementById("data").textContent);
const TOO_FAST = 429; // status
const MS_UNTIL_AGAIN = 800, SECONDS_OF_TRYING = 60;
let language = localStorage.getItem("vitrine language") ?? data.language;
let state = null; // what the server told last
let sending = null; // { scene, said }: an answer that the server has not taken yet
let note = "";
const words = () => data.words[language] ?? data.words.en;

const top = el("header");
const title = el("h1");
const text = el("div", "text");
const question = el("section");
const foot = el("footer");
const line = el("p", "line");
line.setAttribute("role", "status");
question.setAttribute("aria-live", "polite");
document.body.append(top, el("main", "", title, text, question, line), foot);

const place = (scene) => `vitrine answer ${data.code} ${scene}`;
const mine = (scene) => (sending?.scene === scene ? sending.said : localStorage.getItem(place(scene)));

function button(label, act, className = "") {
  const made = el("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Send an answer until the server takes it or says why not; a newer one takes its place.
async function answer(scene, said) {
  const own = { scene, said };
  sending = own;
  note = words().sending;
  show();
  for (const end = Date.now() + 1000 * SECONDS_OF_TRYING; sending === own && Date.now() < end;) {
    const taken = await post(data.base, `${data.code}/answer?lang=${language}`, own);
    if (sending !== own) return;
    if (taken.status === 200) {
      localStorage.setItem(place(scene), said);
      [sending, note] = [null, words().taken];
      return void show();
    }
    if (taken.status && taken.status < 500 && taken.status !== TOO_FAST) {
      [sending, note] = [null, taken.error ?? words().unreachable];
      return void show();
    }
    await new Promise((resolve) => setTimeout(resolve, MS_UNTIL_AGAIN * (0.5 + Math.random())));
  }
  if (sending === own) [sending, note] = [null, words().unreachable];
  show();
}

function options() {
  const { number, stage, counts, finding } = state;
  const chosen = mine(number), total = Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0);
  const rows = Object.entries(state.question.options).map(([option, label]) => {
    const choose = button(label, () => answer(number, option), option === chosen ? "chosen" : "");
    choose.disabled = stage !== "asked";
    choose.setAttribute("aria-pressed", option === chosen);
    if (finding?.option === option) choose.classList.add("right");
    if (counts && total) {
      const share = (counts[option] ?? 0) / total;
      choose.style.setProperty("--share", share);
      choose.append(el("b", "", `${Math.round(100 * share)}%`));
    }
    return choose;
  });
  return el("div", "options", ...rows);
}

function sentence() {
  const box = el("textarea");
  box.maxLength = data.longest;
  box.rows = 3;
  box.value = mine(state.number) ?? "";
  box.setAttribute("aria-label", words().sentence);
  const send = button(words().send, () => box.value.trim() && answer(state.number, box.value.trim().replace(/\s+/g, " ")), "main");
  box.disabled = send.disabled = state.stage !== "asked";
  return el("div", "options", box, send);
}

let drawn = null;
function show() {
  top.replaceChildren(
    el("span", "", data.code ? fill(words().room, { code: data.code }) : words().title),
    button(words().other_language, () => {
      language = language === "zh" ? "en" : "zh";
      localStorage.setItem("vitrine language", language);
      document.documentElement.lang = language;
      drawn = null;
      show();
    }),
  );
  if (!data.code) return ask();
  if (!state) return void line.replaceChildren(words().waiting);
  if (state.closed) {
    title.textContent = words().closed;
    return void [text, question, line, foot].forEach((part) => part.replaceChildren());
  }
  title.textContent = state.title;
  text.replaceChildren(...build(state.text));
  const wants = state.question && !Object.keys(state.question.options).length;
  const asked = wants && `${state.number} ${state.stage}`;
  if (!asked || asked !== drawn) { // a box in which somebody types stays
    question.replaceChildren(...(state.question ? [el("div", "asks", ...build(state.question.words)), wants ? sentence() : options()] : []));
    drawn = asked;
  }
  const said = [note];
  if (state.stage !== "asked") said.push(fill(words().answers, { count: state.answers }));
  line.replaceChildren(...said.filter(Boolean).map((one) => el("span", "", one)));
  question.querySelector(".told")?.remove();
  const told = el("div", "told");
  if (state.picked) told.append(el("blockquote", "", state.picked));
  if (state.finding) told.append(...build(state.finding.said));
  if (told.childNodes.length) question.append(told);
  const look = el("a", "", words().look);
  look.href = state.look;
  look.target = "_blank";
  const open = !state.question || wants || state.stage === "measured"; // the screen shows what answers the question
  foot.replaceChildren(...(open ? [look] : []));
}

// Without a room: a box for the code.
function ask() {
  title.textContent = words().which;
  const box = el("input");
  box.maxLength = 4;
  box.autocapitalize = "characters";
  box.setAttribute("aria-label", words().which);
  const form = el("form", "options", box, el("button", "main", words().enter));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const code = box.value.trim().toUpperCase();
    if (/^[A-Z]{4}$/.test(code)) location.href = `${data.base}room/${code}`;
  });
  question.replaceChildren(form);
  line.textContent = location.pathname.length > `${data.base}room/`.length ? words().none : "";
}

show();
if (data.code) {
  follow((signal) => fetch(`${data.base}room/${data.code}/events`, { signal }), (told) => {
    if (told.number !== state?.number || told.stage !== state?.stage) note = "";
    state = told;
    show();
  }, () => {
    line.textContent = words().again;
  });
}
