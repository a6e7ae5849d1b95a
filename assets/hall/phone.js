// The page on a phone: the scene's title and question, one tap to answer, then what the class and the model say.

import { picture } from "./figure.js";
import { build } from "./nodes.js";
import { el, fill } from "./kit.js";
import { part } from "./part.js";
import { follow, post } from "./room.js";

const data = JSON.parse(document.getElementById("data").textContent);
const TOO_FAST = 429; // status
const MS_UNTIL_AGAIN = 800, SECONDS_OF_TRYING = 60, MS_OF_ALL = 700; // within which all phones ask
let language = localStorage.getItem("vitrine language") ?? data.language;
let state = null; // what the server told last
let sending = null; // { scene, said }: an answer that the server has not taken yet
let own = null; // this phone's part: { scene, lines, ask, results, round }
let wanted = ""; // of which scene and setting the part was asked for last
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
const mine = (scene) => (sending?.scene === scene && !state.each ? sending.said : localStorage.getItem(place(scene)));

function button(label, act, className = "") {
  const made = el("button", className, label);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

// Send something until the server takes it or says why not; what is newer takes its place.
async function send(path, body, taken) {
  sending = body;
  note = words().sending;
  show();
  for (const end = Date.now() + 1000 * SECONDS_OF_TRYING; sending === body && Date.now() < end;) {
    const answer = await post(data.base, `${data.code}/${path}?lang=${language}`, body);
    if (sending !== body) return;
    if (answer.status === 200) {
      [sending, note] = [null, ""];
      taken(answer);
      return void show();
    }
    if (answer.status && answer.status < 500 && answer.status !== TOO_FAST) {
      [sending, note] = [null, answer.error ?? words().unreachable];
      return void show();
    }
    await new Promise((resolve) => setTimeout(resolve, MS_UNTIL_AGAIN * (0.5 + Math.random())));
  }
  if (sending === body) [sending, note] = [null, words().unreachable];
  show();
}

const answer = (scene, said) => send("answer", { scene, said }, () => {
  localStorage.setItem(place(scene), said);
  note = words().taken;
});

// What a phone gives in a round stays; it hears how its part goes on.
const give = (said) => send("give", { scene: own.scene, round: own.round, said, language }, (answer) => (own = answer));

// Ask for this phone's part, which is the same one after a sleep or a reload; not all phones in the same moment.
async function fetchPart(again = false) {
  const key = `${state.number} ${state.class?.setting} ${language}`;
  if (wanted === key && !again) return;
  const first = own?.scene !== state.number;
  wanted = key;
  await new Promise((resolve) => setTimeout(resolve, Math.random() * MS_OF_ALL * (first ? 0.4 : 1)));
  if (wanted !== key) return;
  const found = await post(data.base, `${data.code}/part?lang=${language}`, { scene: state.number, language });
  if (wanted !== key) return;
  if (found.lines) [own, note] = [found, ""];
  else if (found.pending) note = words().computing;
  else note = found.error ?? "";
  if (!found.lines && found.status !== 409) setTimeout(() => wanted === key && state.each && fetchPart(true), MS_UNTIL_AGAIN * (1 + Math.random()));
  show();
}

let partShown = null;
const partBox = el("div"), classBox = el("div");
function each() {
  if (state.class?.pending) [wanted, note] = ["", words().computing]; // the server tells once it is there
  else fetchPart();
  const key = own?.scene === state.number ? own : null;
  const open = state.stage === "asked" && !sending;
  if (key !== partShown?.own || open !== partShown?.open) { // a box in which somebody types stays
    partBox.replaceChildren(...(key ? part(open ? key : { ...key, ask: sending ? key.ask : null }, give) : []));
    partBox.inert = Boolean(sending);
    partShown = { own: key, open };
  }
  classBox.replaceChildren(...(state.class?.picture ? picture(state.class.picture) : []));
  if (state.class?.error) classBox.replaceChildren(el("p", "", state.class.error));
  return [el("div", "asks", ...build(state.each.words)), partBox, classBox];
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
      if (state?.each) wanted = "";
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
  document.body.toggleAttribute("data-part", Boolean(state.each)); // what there is to do stands first
  if (state.each) {
    const nodes = each();
    if (drawn !== `each ${state.number}`) question.replaceChildren(...nodes);
    drawn = `each ${state.number}`;
    line.replaceChildren(...[note, fill(words().answers, { count: state.answers })].filter(Boolean).map((one) => el("span", "", one)));
    return void foot.replaceChildren(...(state.stage === "measured" ? [look()] : []));
  }
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
  const open = !state.question || wants || state.stage === "measured"; // the screen shows what answers the question
  foot.replaceChildren(...(open ? [look()] : []));
}

function look() {
  const link = el("a", "", words().look);
  link.href = state.look;
  link.target = "_blank";
  return link;
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
