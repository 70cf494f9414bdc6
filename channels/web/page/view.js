// The messages, and the reply that is being written.

import { dress, move, render } from "./blocks.js";
import * as files from "./files.js";
import * as scrolling from "./scroll.js";
import { atEnd, follow, forget, news } from "./scroll.js";
import * as steps from "./steps.js";
import { $, call, drop, fileURL, icon, keep, make, need, newID, post, talk, unsent } from "./wire.js";

export { follow };

const scroll = $("scroll"), entries = $("entries"), making = $("making"), pending = $("unsent");
const names = { you: "You", parley: "Parley", note: "Note" };
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// --- one entry

function article(who) {
  return make("article", { className: who, ariaLabel: names[who] },
    make("div", { className: "text" }), make("footer", {}, make("time")));
}

// fragment returns what the server has rendered.
function fragment(html = "") {
  const t = make("template");
  t.innerHTML = html;
  return t.content;
}

// hold gives the focus to article a when the element that has it goes, so that a keyboard stays where it was.
export function hold(a) {
  a.tabIndex = -1;
  a.focus({ preventScroll: true });
}

// clock shows the time that it has in the reader's words.
function clock(time) {
  const at = new Date(time.dateTime);
  const day = at.toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" };
  time.textContent = at.toLocaleString([], { ...day, hour: "numeric", minute: "2-digit" });
  time.title = at.toLocaleString([], { dateStyle: "full", timeStyle: "medium" });
}

const sources = new WeakMap(); // what was written in an article, which is Markdown if it is Parley's

// sourceOf returns what was written in article a. Of an answer that came with the page the server knows it.
export async function sourceOf(a) {
  if (!sources.has(a)) {
    const seq = Number(a.dataset.seq), { entries: es } = await call("GET", `/c/${talk}/before?seq=${seq + 1}`);
    sources.set(a, es.find((e) => e.seq === seq).text);
  }
  return sources.get(a);
}

// write fills article a with entry e.
function write(a, e) {
  const text = a.querySelector(":scope > .text");
  if (e.seq) a.dataset.seq = e.seq;
  a.dataset.id = e.id;
  if (e.answered) a.dataset.answered = "";
  if (e.replies) a.dataset.replies = e.replies;
  if (e.versions) Object.assign(a.dataset, { versions: e.versions.join(" "), version: e.version ?? 0 });
  e.who === "parley" ? render(text, e.html) : (text.textContent = e.text);
  sources.set(a, e.text);
  const old = a.querySelector(":scope > .ask");
  if (old && (e.outcome || !e.ask)) keep(formKey(old), null);
  if (old?.contains(document.activeElement)) hold(a);
  a.querySelectorAll(":scope > :is(.asker, .files, .ask, .outcome)").forEach((old) => old.remove());
  a.classList.toggle("asks", Boolean(e.isCard));
  if (e.isCard) {
    text.id = "what-" + e.ask.id;
    text.before(fragment(e.askHead));
  }
  const below = [];
  if (e.who === "parley") steps.fold(a, e);
  if (e.files?.length && !e.filesHTML) below.push(make("ul", { className: "files" }, ...e.files.map((f) => make("li", {}, shown(f)))));
  text.after(...below, fragment(e.filesHTML), fragment(e.askHTML));
  a.querySelector(":scope > footer time").dateTime = e.time;
  finish(a);
}

const more = []; // what else finishes an article
export const extend = (f) => more.push(f);

// finish adds to an article, which the server may have rendered, what needs scripts.
function finish(a) {
  a.querySelectorAll(":scope > :is(footer, .outcome) time").forEach(clock);
  const form = a.querySelector(":scope > form.ask");
  if (form) forms().then((f) => f.prepare(form));
  for (const img of a.querySelectorAll("img")) if (img.complete && !img.naturalWidth) broken(img);
  if (a.classList.contains("parley")) dress(a.querySelector(":scope > .text"));
  for (const f of more) f(a);
  files.look(a);
}

export function size(n) {
  const [v, unit] = n < 1024 ? [n, "bytes"] : n < 1 << 20 ? [Math.ceil(n / 1024), "KB"] : [(n / (1 << 20)).toFixed(1).replace(".0", ""), "MB"];
  return `${v} ${unit}`;
}

export const card = (f) => [icon("file"), make("span", {}, f.name), make("small", {}, size(f.size))];

// broken replaces an image that cannot be shown with its name.
const broken = (img) => img.parentNode.replaceChildren(icon("file"), make("span", {}, img.alt));

// shown returns a file of a message that the server does not have yet.
function shown(f) {
  const url = fileURL(f);
  if (pictures.includes(f.type)) {
    return make("a", { className: "picture", href: url, target: "_blank" }, make("img", { src: url, alt: f.name, loading: "lazy" }));
  }
  return make("a", { className: "card", href: url, download: f.name }, ...card(f));
}

// --- questions

const forms = () => need("./form.js"); // few conversations have any
const questionOf = (id) => document.querySelector(`.ask[data-question="${CSS.escape(id)}"]`);
export const formKey = (form) => "form/" + form.dataset.question; // of what is filled in, while the question is open
export const controls = (box) => [...box.querySelectorAll("input, select, textarea")];

// answer sends the choice of a button, and what is filled in if the choice takes that.
async function answer(button) {
  const box = button.closest(".ask"), item = { id: newID(), question: box.dataset.question, choice: Number(button.dataset.choice) };
  if (button.type === "submit" && !(item.values = (await forms()).read(box))) return;
  post(item);
  follow();
}

// settle shows which choice was made, or with null that none is.
export function settle(box, choice) {
  if (!box) return; // the question is over
  if (choice !== null && box.contains(document.activeElement)) hold(box.closest("article"));
  for (const c of controls(box)) c.disabled = choice !== null;
  for (const b of box.querySelectorAll("button")) {
    b.disabled = choice !== null;
    b.ariaPressed = String(b.dataset.choice === String(choice));
  }
}

// showWrong says what is wrong with the values of an item.
export function showWrong({ question }, problems) {
  const form = questionOf(question);
  if (form) forms().then((f) => f.showWrong(form, problems));
}

// --- unsent messages

// mark shows the state of the messages that were written here.
export function mark() {
  const open = new Set(unsent.map((i) => i.id));
  for (const m of document.querySelectorAll("[data-mark]")) if (!open.has(m.dataset.mark)) m.remove();
  for (const a of pending.children) if (a.classList.contains("failed") && !open.has(a.dataset.id)) a.remove();
  for (const item of unsent) {
    const a = item.question ? questionOf(item.question)?.parentNode : place(item);
    if (!a) continue;
    if (item.question) settle(a.querySelector(".ask"), item.choice);
    a.classList.toggle("failed", Boolean(item.failed));
    a.querySelector("[data-mark]")?.remove();
    const say = make("span", {}, item.failed ? `Not sent: ${item.failed}` : unsent.some((i) => i.late) ? "Waiting to be sent" : "Sending…");
    say.dataset.mark = item.id;
    if (item.failed) {
      say.className = "bad";
      say.append(" ", make("button", { type: "button", onclick: () => post(item) }, "Try again"),
        make("button", { type: "button", onclick: () => (item.question && settle(a.querySelector(".ask"), null), drop(item)) }, "Remove"));
    }
    a.querySelector("footer").append(say);
  }
  news();
}

const messageOf = (id) => document.querySelector(`article.you[data-id="${CSS.escape(id)}"]`);

function place(item) {
  const old = messageOf(item.id);
  if (old) return old;
  const a = article("you");
  write(a, { ...item, who: "you", time: new Date(item.time).toISOString() });
  pending.append(a);
  follow();
  return a;
}

// --- events

let draft = null, quiet; // draft is the article of the pending reply
export let busy = false;
let busyChanged = () => {};
export const onBusy = (f) => (busyChanged = f);

function work(on) {
  clearTimeout(quiet);
  if (on) quiet = setTimeout(() => work(false), 12e3); // a busy agent sends an event every few seconds
  if (!on && draft && !draft.dataset.id) draft = void draft.remove();
  draft?.querySelector(".dots")?.remove();
  busy = on;
  making.ariaBusy = String(on);
  if (on && !draft) {
    draft = article("parley");
    making.append(draft);
  }
  if (on && draft.querySelector(".text:empty")) draft.querySelector("footer").before(make("div", { className: "dots" }, make("i"), make("i"), make("i")));
  busyChanged();
  document.body.toggleAttribute("data-busy", on);
  news();
}

// draftOf returns the article of the pending reply with that ID.
function draftOf(reply) {
  if (draft?.dataset.id && draft.dataset.id !== reply) draft = void draft.remove();
  work(true);
  draft.dataset.id = reply;
  return draft;
}

export const handlers = {
  busy({ on, before }) {
    if (!on) return end();
    work(true);
    arrange(before);
  },
  draft({ reply, html }) {
    render(draftOf(reply).querySelector(".text"), html, false);
    work(true);
  },
  step(s) {
    if (steps.step(draftOf(s.reply), s)) attend();
    news();
  },
  message(e) {
    if (e.edits) {
      const a = document.querySelector(`article[data-seq="${e.edits}"]`);
      const made = e.stepsOf && draft?.dataset.id === e.stepsOf && draft.querySelector(":scope > .steps");
      if (a && made && !a.querySelector(":scope > .steps")) a.prepend(made); // a tool gave the answer
      if (!a) return;
      write(a, { ...e, seq: e.edits });
      if (!e.replies) return;
      answered(e);
      rise();
      if (a.parentNode === pending) move(a, entries);
      order(a, e);
      return;
    }
    if (document.querySelector(`article[data-seq="${e.seq}"]`)) return;
    let a = e.who === "you" ? messageOf(e.id) : null;
    if (e.who === "parley" && draft && (draft.dataset.id ? draft.dataset.id === e.id : !accepted().some((m) => answers(e, m)))) {
      a = draft;
      draft = null;
      a.querySelector(".dots")?.remove();
    }
    a ??= article(e.who);
    write(a, e);
    answered(e);
    const said = accepted();
    if (draft && (e.who === "you" || said.length)) {
      said.length ? said.at(-1).after(a) : pending.prepend(a); // below the pending reply
      if (e.who === "parley") $("told").textContent = a.innerText; // screen readers announce what comes to the entries only
      rise();
    } else {
      rise();
      move(a, entries);
      if (e.replies) order(a, e);
    }
    if (e.who === "parley" && !draft) end(); // otherwise another reply is still pending
    if (e.who !== "you") news(1);
    mark();
    attend();
  },
};

const answers = ({ replies, also = [] }, m) => Boolean(replies) && (m.dataset.id === replies || also.includes(m.dataset.id));
const waits = (m) => m.classList.contains("you") && !("answered" in m.dataset);

// answered marks the messages that e answers.
function answered(e) {
  for (const m of document.querySelectorAll("article.you")) if (answers(e, m)) m.dataset.answered = "";
}

// order moves the answer a above messages that the person sent while it was being written, unless they have an
// answer: this one, or one that came meanwhile. The server does the same.
function order(a, e) {
  const before = [...entries.children].slice(0, [...entries.children].indexOf(a));
  const last = before.findLastIndex((m) => answers(e, m));
  const later = last >= 0 && before.slice(last + 1).find(waits);
  if (later) later.before(a);
}

// accepted returns what stands below the pending reply and is in the log: a message of the person that came while it
// was being written, and what was said after that.
const accepted = () => [...pending.children].filter((m) => m.dataset.seq);

// rise moves what stands below the pending reply above it, up to the first message without an answer, or to article first.
function rise(first = accepted().find(waits)) {
  for (const m of accepted()) {
    if (m === first) return;
    move(m, entries);
  }
}

// arrange has the pending reply stand above entry number seq, or below all with 0.
function arrange(seq) {
  const first = seq ? document.querySelector(`article[data-seq="${seq}"]`) : null;
  if (first?.parentNode === entries) pending.prepend(...[...entries.children].slice([...entries.children].indexOf(first)));
  else rise(first);
}

function end() {
  if (draft?.dataset.id) draft = void draft.remove();
  work(false);
  rise(null);
}

// renew shows the entries es in place of all others.
export function renew(es, hasMore) {
  entries.ariaLive = "off"; // screen readers must not announce them again
  const below = accepted().map((m) => (m.remove(), m.dataset.seq));
  entries.replaceChildren(...es.map(fresh));
  if (draft) arrange(below[0]);
  requestAnimationFrame(() => (entries.ariaLive = "polite"));
  entries.dataset.first = es.length ? Math.min(...es.map((e) => e.seq)) : 0;
  $("older").hidden = !hasMore;
  mark();
  forget();
}

function fresh(e) {
  const a = article(e.who);
  write(a, e);
  return a;
}

// --- scrolling

// attend scrolls an open question into view, which may be above the pending reply.
function attend() {
  const a = draft && atEnd() && (accepted().at(-1) ?? entries.lastElementChild)?.querySelector(".ask button:enabled")?.closest("article");
  if (a) a.scrollIntoView({ block: a.offsetHeight > scroll.clientHeight ? "start" : "nearest" });
}

async function older() {
  const first = entries.dataset.first;
  if ($("older").disabled) return;
  $("older").disabled = true;
  try {
    const { entries: es, more } = await call("GET", `/c/${talk}/before?seq=${Number(first)}`);
    const bottom = scroll.scrollTop, as = es.map(fresh);
    entries.ariaLive = "off"; // screen readers must not announce old messages
    entries.prepend(...as);
    requestAnimationFrame(() => (entries.ariaLive = "polite"));
    scroll.scrollTop = bottom;
    forget();
    entries.dataset.first = es.length ? Math.min(...es.map((e) => e.seq)) : first;
    $("older").hidden = !more;
  } catch {} // the button can be pressed again
  $("older").disabled = false;
}

export function start() {
  entries.querySelectorAll("article").forEach(finish);
  mark();
  scrolling.start();
  files.start();
  $("older").onclick = older;
  scroll.addEventListener("click", ({ target }) => {
    const choice = target.closest(".ask button");
    if (choice) answer(choice);
  });
  steps.start(entries);
  entries.addEventListener("error", (e) => broken(e.target), true);
}
