// The projector: a scene's words and its screen, one step at a time; the next screen is there before it is asked for.

import { picture } from "./figure.js";
import { build } from "./nodes.js";
import { el, fill, QUIET } from "./kit.js";
import { followRoom, post } from "./room.js";

const data = JSON.parse(document.getElementById("data").textContent);
const { words, scenes } = data;
const STAGES = ["asked", "shown", "measured"];
const SECRET = "vitrine room "; // begins the names under which this browser keeps the secrets of rooms that it opened
const WIDE = 1920, ZOOM = 2, LEAST_ZOOM = 1.9; // at this width a screen is shown so much larger than in a window of its own
const MS_BETWEEN_DIGITS = 700, MS_BETWEEN_LOOKS = 60, SWIPE = 80, MS_BETWEEN_FITS = 250;
const LEAST_SHARE = 0.45, SHRINK = 0.85; // of the frame's width, and of a figure's at a time
const MS_OF_KEYS = 5000;
const MS_BETWEEN_CLASSES = 1000, MS_BETWEEN_SLIDES = 150;
const MS_TO_SETTLE = 300, MS_TO_WAIT = 4000; // until the largest figure is known, and for figures that are named
const BOXES = ".st-key-picture [data-testid=stElementContainer]";
const RAN = `${QUIET} .st-key-language_and_share`; // every page has it

const HOME = ["localhost", "127.0.0.1", "[::1]"];

const channel = new BroadcastChannel("vitrine lecture");
const asked = new URLSearchParams(location.search);
const frames = new Map(); // screens that are loaded, by the number of their scene
const sliders = new Map(); // where the lecturer's slider stands, by the number of the scene
const pictures = new Map(); // of draws that stand for a class, where there is no room
const findings = new Map(); // what was measured, by the number of the scene
const stages = new Map();
let at = clamp(+asked.get("scene") || 1);
let allControls = false;
let screenInstead = false; // of what the class came to, the screen of the app is shown
let begun = null; // the run that was begun in a scene
let room = null; // { code, secret, link, qr, state }

function clamp(number) {
  return Math.min(Math.max(Math.round(number), 1), scenes.length);
}

// ---- the page

const title = el("h1");
const place = el("p", "place");
const text = el("div", "text");
const question = el("section", "question");
const stage = el("main", "screens");
const ofClass = el("section", "class-screen");
const slider = el("div", "slider");
const heard = el("div");
const join = el("aside", "join");
const dark = el("div", "dark");
const help = el("aside", "help", el("h2", "", words.keys), ...words.key_list.split("\n").map((line) => el("p", "", line)));
dark.hidden = join.hidden = true;
help.classList.add("brief"); // at first, for so long as it takes to read
const read = () => {
  help.hidden = true;
  help.classList.remove("brief");
};
setTimeout(() => help.classList.contains("brief") && read(), MS_OF_KEYS);
question.setAttribute("aria-live", "polite");
ofClass.hidden = true;
stage.append(ofClass);
document.body.append(el("div", "words", el("header", "", title, place), text, question), stage, join, help, dark);

// ---- screens

function linkOf(number) {
  const scene = scenes[number - 1];
  const picked = room?.state?.picked;
  const link = new URL(scene.frame, data.base === "/" ? `${location.origin}/` : `${location.origin}${data.base}`);
  if (picked && room.state.scene === number) link.searchParams.set("text", picked);
  return link.href;
}

// A scene may ask for the newest run: a screen that was loaded before that run began is loaded again.
const runOf = ({ frame }) => new URLSearchParams(frame.contentWindow?.location.search).get("run");
const isStale = (number, made) =>
  begun && scenes[number - 1].frame.includes("run=newest") && ![begun, "newest"].includes(runOf(made));

function screen(number) {
  const link = linkOf(number);
  const known = frames.get(number);
  if (known?.link === link && !isStale(number, known)) return known;
  known?.frame.remove();
  const frame = el("iframe");
  const made = { frame, link, ready: false, ran: undefined, figures: null, fit: null };
  frame.title = scenes[number - 1].title;
  frame.addEventListener("load", () => listen(frame.contentWindow));
  frame.src = link;
  stage.append(frame);
  frames.set(number, made);
  look(number, made);
  return made;
}

// Look until a screen's figures are there; then the screens beside it may load.
function look(number, made) {
  if (frames.get(number) !== made) return;
  made.ran ??= made.frame.contentDocument?.querySelector(RAN) ? performance.now() : undefined;
  made.ready = made.ran !== undefined && arrange(number);
  if (!made.ready) return void setTimeout(() => look(number, made), MS_BETWEEN_LOOKS);
  made.frame.classList.add("ready");
  uncover(number);
  if (number === at) prepare();
}

// The figures of a screen by name: components by their keys, charts counted, the bars of verdicts together, and the
// formulas of a cell or a weight together.
function figuresOf(page) {
  const found = {};
  let charts = 0;
  for (const box of page.querySelectorAll(BOXES)) {
    const key = [...box.classList].find((name) => name.startsWith("st-key-"))?.slice(7);
    let name = null;
    const whole = box.closest("[class*=st-key-figure_]")?.className.match(/st-key-figure_(\w+)/);
    if (whole) name = whole[1];
    else if (box.querySelector("[data-verdict], [data-number]")) name = "verdict";
    else if (box.querySelector("[data-lines]")) name = "lines";
    else if (box.querySelector(".katex") && box.closest("[class*=st-key-formula_]")) name = "formula";
    else if (box.querySelector("[data-testid=stFullScreenFrame]")) name = ++charts > 1 ? `chart${charts}` : "chart";
    else if (box.querySelector(".stBidiComponent") && key !== "live") name = key;
    if (name) (found[name] ??= []).push(box);
  }
  return found;
}

const area = (box) => box.offsetWidth * box.offsetHeight;

// Show a scene's figures alone, as large as they fit, and tell whether they are there; where there is none, the screen
// stays as it is.
function arrange(number) {
  const made = frames.get(number);
  const page = made?.frame.contentDocument;
  if (made?.ran === undefined || !page?.body) return false;
  if (number === at && !scenes[number - 1].frame.includes("run=")) begun = runOf(made) ?? begun;
  const found = figuresOf(page), since = performance.now() - made.ran;
  if (!made.figures) {
    const sorted = Object.entries(found).sort(([, [one]], [, [other]]) => area(other) - area(one));
    const named = scenes[number - 1].figure.split(" ").filter(Boolean);
    const known = named.length ? named.every((name) => found[name]) : sorted.length > 0 && since > MS_TO_SETTLE;
    if (!known && since < MS_TO_WAIT && page.querySelector(".st-key-picture")) return false;
    made.figures = named.length ? named : sorted.slice(0, 1).map(([name]) => name);
  }
  const shown = new Set(made.figures.flatMap((name) => found[name] ?? []));
  for (const box of page.querySelectorAll(BOXES)) {
    if (shown.has(box) !== "shown" in box.dataset) box.toggleAttribute("data-shown", shown.has(box));
  }
  page.documentElement.toggleAttribute("data-figures", shown.size > 0 && !allControls);
  fit(made, page);
  centre(page);
  return true;
}

// Narrow what grows with its width until it is not higher than the frame; what does not, keeps its width.
function fit(made, page) {
  const picture = page.querySelector(".st-key-picture"), room = page.querySelector("[data-testid=stMain]");
  if (!picture || !room) return;
  const over = room.scrollHeight - room.clientHeight, full = picture.parentElement.offsetWidth;
  const known = made.fit ?? { share: 1, over: Infinity, full };
  const share = made.frame.style.getPropertyValue("--share");
  if (!allControls && known.over === -Infinity && over > 0 && share === "") {
    made.frame.style.setProperty("--share", Math.max(LEAST_ZOOM / ZOOM, room.clientHeight / room.scrollHeight));
    made.fit = null;
  } else if (allControls || known.full !== full || (known.share < 1 && over >= known.over)) {
    picture.style.removeProperty("max-width");
    made.fit = { share: 1, over: allControls ? Infinity : -Infinity, full };
  } else if (over > 0 && over < known.over && known.share > LEAST_SHARE) {
    const narrower = Math.max(LEAST_SHARE, known.share * Math.max(1 - over / picture.offsetHeight, SHRINK));
    picture.style.maxWidth = `${100 * narrower}%`;
    made.fit = { share: narrower, over, full };
  }
}

// Put figures into the middle of the room below what stands above them.
function centre(page) {
  const picture = page.querySelector(".st-key-picture"), room = page.querySelector("[data-testid=stMain]");
  if (!picture || !room) return;
  const lower = parseFloat(picture.style.translate.split(" ")[1]) || 0;
  const free = room.clientHeight - (picture.getBoundingClientRect().bottom - lower);
  const now = allControls || room.scrollTop ? 0 : Math.max(0, Math.floor(free / 2));
  if (Math.abs(now - lower) > 2) picture.style.translate = `0 ${now}px`;
}

// What a screen covers is shown with the answer to the scene's question, and covered again with it; at once where the
// scene asks nothing that the screen answers.
function uncover(number) {
  const made = frames.get(number);
  if (!made?.ready) return;
  const key = !chooses(number) || stageOf(number) === "measured" ? "show" : "hide";
  for (const button of made.frame.contentDocument.querySelectorAll(`[class*=st-key-${key}_] button`)) button.click();
}

function prepare() {
  stage.dataset.ready = at;
  const beside = [at + 1, at - 1].filter((number) => scenes[number - 1]);
  for (const [number, { frame }] of frames) {
    if (number !== at && !beside.includes(number)) {
      frame.remove();
      frames.delete(number);
    }
  }
  for (const number of beside) screen(number);
  measure(at);
  for (const number of [at, ...beside]) drawn(number);
}

// Ask for the picture of a scene in which draws of the model stand for the class; what takes long is begun ahead.
async function drawn(number, again = false) {
  if (!scenes[number - 1].each || (pictures.has(number) && !again)) return;
  const asked = { seat: 0, sent: [], stage: stageOf(number), value: sliders.get(number) };
  pictures.set(number, pictures.get(number) ?? null);
  const query = new URLSearchParams({ lecture: data.name, scene: number, lang: data.language });
  let told = {};
  try {
    const answer = await fetch(`${data.base}hall/alone?${query}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(asked) });
    told = await answer.json();
  } catch {
    told = { error: words.unreachable };
  }
  if (told.pending) return void setTimeout(() => Math.abs(number - at) <= 1 && drawn(number, true), MS_BETWEEN_CLASSES);
  pictures.set(number, told);
  if (number === at && !room) showQuestion();
}

// Moves the lecturer's slider: what the class drew is looked at once more, with the same random numbers.
let slid = 0;
async function slide(number, value) {
  sliders.set(number, value);
  const mine = ++slid;
  await new Promise((resolve) => setTimeout(resolve, MS_BETWEEN_SLIDES));
  if (mine !== slid) return;
  if (room) post(data.base, `${room.code}/slide`, { secret: room.secret, scene: number, value });
  else drawn(number, true);
}

function showSlider(scene) {
  const { low, high, step, first, label } = scene.each.slider ?? {};
  if (slider.dataset.scene === String(at)) return;
  slider.dataset.scene = at;
  if (!scene.each.slider) return void slider.replaceChildren();
  const box = el("input"), told = el("output");
  Object.assign(box, { type: "range", min: low, max: high, step, value: sliders.get(at) ?? room?.state?.class?.setting ?? first });
  told.textContent = box.value;
  const number = at;
  box.addEventListener("input", () => {
    told.textContent = box.value;
    slide(number, +box.value);
  });
  box.addEventListener("pointerup", () => box.blur()); // the arrow keys step again
  slider.replaceChildren(el("label", "", label, box), told);
}

// A scene that gives every phone a part: what it asks, and what the class came to so far.
function showEach(scene) {
  const shown = room ? (room.state?.scene === at ? room.state.class : null) : pictures.get(at);
  showSlider(scene);
  if (question.dataset.each !== String(at)) question.replaceChildren(el("div", "", ...build(scene.each.words)), slider, heard); // a slider that is held stays
  question.dataset.each = at;
  const lines = [];
  if (room?.state && stageOf(at) === "asked") lines.push(fill(words.join_line, { link: room.link, code: room.code }));
  if (room?.state) lines.push(fill(words.given, { answers: shown?.given ?? 0, people: shown?.people ?? 0, phones: room.state.phones }));
  else lines.push(scene.each.alone);
  heard.replaceChildren(...lines.map((line) => el("p", "joined", line)));
  ofClass.replaceChildren(...(shown?.picture ? picture(shown.picture) : [el("p", "", shown?.error ?? words.computing)]));
}

async function measure(number) {
  if (!scenes[number - 1].question || findings.has(number)) return;
  const query = new URLSearchParams({ lecture: data.name, scene: number, lang: data.language });
  findings.set(number, null);
  try {
    const answer = await fetch(`${data.base}hall/measured?${query}`);
    findings.set(number, await answer.json());
  } catch {
    findings.delete(number);
  }
  if (number !== at) return;
  showQuestion();
  say();
}

// ---- a scene

const stageOf = (number) => stages.get(number) ?? "asked";
const chooses = (number) => Object.keys(scenes[number - 1].question?.options ?? {}).length > 0;

function show(number, { tell = true } = {}) {
  at = clamp(number);
  screenInstead = false;
  const scene = scenes[at - 1];
  title.textContent = scene.title;
  place.textContent = fill(words.place, { number: at, count: scenes.length });
  text.replaceChildren(...build(scene.text));
  delete stage.dataset.ready;
  const shown = screen(at);
  for (const { frame } of frames.values()) frame.classList.toggle("shown", frame === shown.frame);
  if (document.activeElement !== shown.frame) { // keys shall not go on to a screen that is seen no more
    document.activeElement?.blur();
    window.focus();
  }
  if (shown.ready) prepare();
  asked.set("scene", at);
  history.replaceState(null, "", `?${asked}${location.hash}`);
  join.hidden = true;
  showQuestion();
  if (room && tell) step();
  say();
}

function showQuestion() {
  const scene = scenes[at - 1];
  ofClass.hidden = !scene.each || screenInstead;
  if (scene.each) {
    question.hidden = false;
    return void showEach(scene);
  }
  delete question.dataset.each;
  delete slider.dataset.scene;
  question.hidden = !scene.question;
  if (!scene.question) return void question.replaceChildren();
  const now = stageOf(at);
  const told = room?.state?.scene === at ? room.state.finding : null;
  const finding = now === "measured" ? (told ?? findings.get(at)) : null;
  const counts = room?.state?.scene === at ? room.state.counts ?? {} : {};
  const answers = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const parts = [el("div", "", ...build(scene.question.words))];
  if (scene.question.options) {
    const rows = Object.entries(scene.question.options).map(([option, label]) => {
      const row = el("li", finding?.option === option ? "right" : "", el("span", "", label));
      if (now !== "asked" && answers) {
        const share = (counts[option] ?? 0) / answers;
        row.style.setProperty("--share", share);
        row.append(el("b", "", fill(words.share, { share: Math.round(100 * share), count: counts[option] ?? 0 })));
      }
      return row;
    });
    parts.push(el("ol", now === "asked" ? "" : "counted", ...rows));
  }
  if (room?.state?.picked && room.state.scene === at) parts.push(el("blockquote", "", room.state.picked));
  if (finding) {
    const right = answers && finding.option in scene.question.options ? (counts[finding.option] ?? 0) / answers : null;
    parts.push(el("div", "measured", ...build(finding.said)));
    if (right !== null) parts.push(el("p", "", fill(words.were_right, { share: Math.round(100 * right) })));
  } else if (now === "measured") parts.push(el("p", "", words.measuring));
  if (room?.state) {
    const said = fill(words.answered, { answers: room.state.answers ?? answers, phones: room.state.phones });
    if (now === "asked") parts.push(el("p", "joined", fill(words.join_line, { link: room.link, code: room.code })));
    parts.push(el("p", "joined", said));
  }
  question.replaceChildren(...parts);
}

// Go one stage on or back: the class's answers where there is a class, then what the model says.
function reveal(by) {
  const scene = scenes[at - 1];
  if (!scene.question && !scene.each) return;
  const order = room ? STAGES : ["asked", "measured"];
  const next = order[Math.min(Math.max(order.indexOf(stageOf(at)) + by, 0), order.length - 1)];
  stages.set(at, next);
  measure(at);
  if (!room) drawn(at, true);
  uncover(at);
  showQuestion();
  if (room) step();
  say();
}

// ---- the room

async function open() {
  if (room) return void (join.hidden = !join.hidden);
  const wanted = { lecture: data.name, language: data.language, scene: at };
  let made = await post(data.base, "open", wanted);
  if (made.why === "room.third" && confirm(made.error)) made = await post(data.base, "open", { ...wanted, instead: true });
  if (!made.code) return void (made.why === "room.third" || alert(made.error ?? words.unreachable));
  location.hash = made.code;
  localStorage.setItem(SECRET + made.code, made.secret); // not in the address bar, which a whole class reads
  enter(made);
  join.hidden = false;
}

function enter(made) {
  room = { ...made, state: null };
  room.stop = followRoom(data.base, room, (state) => {
    const first = room.state === null;
    const before = room.state?.picked ?? null;
    room.state = state;
    if (state.closed) return void leave();
    if (first) {
      for (const [number, now] of Object.entries(state.stages ?? {})) stages.set(+number, now);
      if (state.scene !== at && asked.get("scene") === null) return void show(state.scene, { tell: false });
      step();
    }
    if (before !== state.picked) show(at, { tell: false });
    showJoin();
    showQuestion();
    say();
  });
  showJoin();
}

function leave() {
  if (room) localStorage.removeItem(SECRET + room.code);
  room?.stop();
  room = null;
  history.replaceState(null, "", `?${asked}`);
  join.hidden = true;
  showQuestion();
  say();
}

// Steps are told one after the other, each as it then is: of two on their way at once, the older could come last.
let stepped = Promise.resolve();
const step = () =>
  (stepped = stepped.then(
    () => room && post(data.base, `${room.code}/step`, { secret: room.secret, scene: at, stage: stageOf(at) }),
  ));

function showJoin() {
  if (!room) return;
  const image = el("img");
  image.src = room.qr;
  image.alt = room.link;
  join.replaceChildren(
    image,
    el("p", "code", room.code),
    el("p", "", room.link),
    el("p", "", fill(words.phones, { phones: room.state?.phones ?? 0 })),
    HOME.includes(location.hostname) ? el("p", "joined", words.at_home) : "",
  );
}

// ---- keys, swipes, and the window with notes

let digits = "", lastDigit = 0;
function jump(digit) {
  const now = performance.now();
  digits = now - lastDigit < MS_BETWEEN_DIGITS && +(digits + digit) <= scenes.length ? digits + digit : digit;
  lastDigit = now;
  if (+digits >= 1 && +digits <= scenes.length) show(+digits);
}

function notes() {
  const query = new URLSearchParams({ lecture: data.name, lang: data.language });
  window.open(`${data.base}hall/notes?${query}`, "vitrine notes", "popup,width=1100,height=760");
}

const KEYS = {
  ArrowRight: () => show(at + 1), PageDown: () => show(at + 1), " ": () => show(at + 1),
  ArrowLeft: () => show(at - 1), PageUp: () => show(at - 1),
  ArrowDown: () => reveal(1), Enter: () => reveal(1), ArrowUp: () => reveal(-1),
  Home: () => show(1), End: () => show(scenes.length),
  c: () => {
    allControls = !allControls;
    for (const number of frames.keys()) arrange(number);
  },
  x: () => {
    screenInstead = !screenInstead;
    showQuestion();
  },
  b: () => (dark.hidden = !dark.hidden), ".": () => (dark.hidden = !dark.hidden),
  n: notes, r: open, f: () => (document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen()),
  "?": () => (help.hidden = !help.hidden), h: () => (help.hidden = !help.hidden),
  Escape: () => (help.hidden = join.hidden = dark.hidden = true),
};
const OWN_KEYS = "input, textarea, select, [contenteditable], [role=slider], [role=radio], [role=option], [role=combobox], canvas[tabindex]";

function listen(target) {
  target.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key !== "Escape" && event.target.closest?.(OWN_KEYS)) return;
    const act = KEYS[event.key] ?? KEYS[event.key.toLowerCase()] ?? (/^[0-9]$/.test(event.key) ? () => jump(event.key) : null);
    if (!act) return;
    event.preventDefault();
    if (help.classList.contains("brief")) read();
    act();
  });
  let start = null;
  target.addEventListener("touchstart", ({ touches, target: touched }) => {
    start = touches.length === 1 && !touched.closest?.("canvas, svg, input, [role=slider]") ? touches[0].clientX : null;
  }, { passive: true });
  target.addEventListener("touchend", ({ changedTouches }) => {
    const moved = start === null ? 0 : changedTouches[0].clientX - start;
    if (Math.abs(moved) > SWIPE) show(at - Math.sign(moved));
  }, { passive: true });
}

function say() {
  const { stop, ...known } = room ?? {};
  channel.postMessage({ lecture: data.name, at, stage: stageOf(at), finding: findings.get(at) ?? null, room: room && known });
}

const ASKED = {
  hello: say,
  step: ({ by }) => show(at + by),
  go: ({ number }) => show(number),
  reveal: ({ by }) => reveal(by),
  dark: KEYS.b,
  open,
  pick: ({ answer }) => room && post(data.base, `${room.code}/pick`, { secret: room.secret, answer }),
  close: () => room && post(data.base, `${room.code}/close`, { secret: room.secret }).then(leave),
};
channel.addEventListener("message", ({ data: message }) => {
  if (message.ask && message.lecture === data.name) ASKED[message.ask]?.(message);
});

function size() {
  stage.style.setProperty("--zoom", Math.max(1, (ZOOM * innerWidth) / WIDE));
}

addEventListener("resize", size);
setInterval(() => [...frames.keys()].forEach(arrange), MS_BETWEEN_FITS);
listen(window);
size();
const code = location.hash.slice(1), secret = localStorage.getItem(SECRET + code);
show(at, { tell: false });
if (code && secret) {
  post(data.base, `${code}/enter`, { secret }).then((made) => made.code && enter({ ...made, secret }));
}
