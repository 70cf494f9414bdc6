// What was said, and what is being said.

import { $, call, command, drop, fileURL, icon, make, newID, post, talk, unsent } from "./wire.js";

const scroll = $("scroll"), entries = $("entries"), making = $("making"), pending = $("unsent");
const names = { you: "You", parley: "Parley", note: "Note" };
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// --- one entry

function article(who) {
  return make("article", { className: who, ariaLabel: names[who] },
    make("div", { className: "text" }), make("footer", {}, make("time")));
}

// write makes a say what e says.
function write(a, e) {
  const text = a.querySelector(":scope > .text");
  if (e.seq) a.dataset.seq = e.seq;
  a.dataset.id = e.id;
  e.who === "parley" ? render(text, e.html) : (text.textContent = e.text);
  a.querySelectorAll(":scope > :is(.files, .ask)").forEach((old) => old.remove());
  const more = [], steps = a.querySelector(":scope > .steps");
  if (e.steps && !steps) a.prepend(make("p", { className: "steps" }, e.steps));
  if (steps?.dataset.mine === undefined) steps?.removeAttribute("open");
  if (e.files?.length) more.push(make("ul", { className: "files" }, ...e.files.map((f) => make("li", {}, shown(f)))));
  if (e.ask) more.push(question(e.ask));
  text.after(...more);
  a.querySelector("time").dateTime = e.time;
  finish(a);
}

// finish adds to an entry, which may be the server's, what only scripts can.
function finish(a) {
  const time = a.querySelector("time"), at = new Date(time.dateTime);
  const day = at.toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" };
  time.textContent = at.toLocaleString([], { ...day, hour: "numeric", minute: "2-digit" });
  time.title = at.toLocaleString([], { dateStyle: "full", timeStyle: "medium" });
  for (const img of a.querySelectorAll("img")) if (img.complete && !img.naturalWidth) broken(img);
  for (const pre of a.querySelectorAll(".text pre:not(.code > pre)")) {
    const box = make("div", { className: "code" });
    pre.replaceWith(box);
    Object.assign(pre, { tabIndex: 0, role: "group", ariaLabel: "Code" }); // for those who scroll by keyboard
    box.append(pre, make("button", { type: "button", className: "copy" }, "Copy"));
  }
}

// render replaces what e shows with html, which the server made safe, and
// leaves alone what stays: a selection, a place scrolled to.
function render(e, html) {
  const t = make("template");
  t.innerHTML = html;
  const fresh = [...t.content.childNodes];
  let same = 0;
  while (same < fresh.length && e.childNodes[same]?.isEqualNode(fresh[same])) same++;
  while (e.childNodes.length > same) e.lastChild.remove();
  e.append(...fresh.slice(same));
}

function size(n) {
  const [v, unit] = n < 1024 ? [n, "bytes"] : n < 1 << 20 ? [Math.ceil(n / 1024), "KB"] : [(n / (1 << 20)).toFixed(1), "MB"];
  return `${v} ${unit}`;
}

export const card = (f) => [icon("file"), make("span", {}, f.name), make("small", {}, size(f.size))];

// broken takes away a picture that only called itself one.
const broken = (img) => img.parentNode.replaceChildren(icon("file"), make("span", {}, img.alt));

function shown(f) {
  const url = fileURL(f);
  if (pictures.includes(f.type)) {
    return make("a", { className: "picture", href: url, target: "_blank" }, make("img", { src: url, alt: f.name, loading: "lazy" }));
  }
  return make("a", { className: "card", href: url, download: f.name }, ...card(f));
}

// --- questions

function question(ask) {
  const buttons = ask.choices.map((c, i) => make("button", { type: "button" }, c));
  buttons.forEach((b, i) => (b.dataset.choice = i));
  const box = make("div", { className: "ask", role: "group", ariaLabel: "Choose an answer" }, ...buttons);
  box.dataset.question = ask.id;
  return box;
}

function settle(box, choice) {
  for (const b of box.children) {
    b.disabled = choice !== null;
    b.ariaPressed = String(b.dataset.choice === String(choice));
  }
}

// --- what was not sent yet

// mark shows what became of what was written here.
export function mark() {
  const open = new Set(unsent.map((i) => i.id));
  for (const m of document.querySelectorAll("[data-mark]")) if (!open.has(m.dataset.mark)) m.remove();
  for (const a of pending.children) if (a.classList.contains("failed") && !open.has(a.dataset.id)) a.remove();
  for (const item of unsent) {
    const a = item.question ? document.querySelector(`[data-question="${CSS.escape(item.question)}"]`)?.parentNode : place(item);
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

const named = (id) => document.querySelector(`article.you[data-id="${CSS.escape(id)}"]`);

function place(item) {
  const old = named(item.id);
  if (old) return old;
  const a = article("you");
  write(a, { ...item, who: "you", time: new Date(item.time).toISOString() });
  pending.append(a);
  follow();
  return a;
}

// --- what comes

let draft = null, quiet; // draft is the article of the reply in the making
export let busy = false;
let told = () => {};
export const onBusy = (f) => (told = f);

function work(on) {
  clearTimeout(quiet);
  if (on) quiet = setTimeout(() => work(false), 12e3); // signs of life come every few seconds
  if (!on && draft && !draft.dataset.id) draft = void draft.remove();
  draft?.querySelector(".dots")?.remove();
  busy = on;
  making.ariaBusy = String(on);
  if (on && !draft) {
    draft = article("parley");
    making.append(draft);
  }
  if (on && draft.querySelector(".text:empty")) draft.querySelector("footer").before(make("div", { className: "dots" }, make("i"), make("i"), make("i")));
  told();
  news();
}

// towards returns the article of the reply of that ID, which is in the making.
function towards(reply) {
  if (draft?.dataset.id && draft.dataset.id !== reply) draft = void draft.remove();
  work(true);
  draft.dataset.id = reply;
  return draft;
}

export const hear = {
  busy: ({ on }) => (on ? work(true) : end()),
  draft({ reply, html }) {
    render(towards(reply).querySelector(".text"), html);
    work(true);
  },
  step(s) {
    const a = towards(s.reply);
    const steps = a.querySelector(".steps") ?? a.insertBefore(make("details", { className: "steps", open: true },
      make("summary", { onclick: () => (steps.dataset.mine = "") }, make("i", { className: "mark" }), make("span")), make("ul")), a.firstChild);
    const list = steps.querySelector("ul");
    let li = [...list.children].find((l) => l.dataset.call === s.requestId);
    const begins = !li;
    if (begins) list.append((li = make("li", {}, make("details", {}, make("summary"), make("div")))));
    use(li, s);
    sum(steps.firstChild, [...list.children].map((l) => l.dataset));
    if (begins) attend();
    news();
  },
  message(e) {
    if (e.edits) {
      const a = entries.querySelector(`[data-seq="${e.edits}"]`);
      if (a) write(a, { ...e, seq: e.edits });
      return;
    }
    if (document.querySelector(`article[data-seq="${e.seq}"]`)) return;
    let a = e.who === "you" ? named(e.id) : null;
    if (e.who === "parley" && draft && (draft.dataset.id ?? e.id) === e.id) {
      a = draft;
      draft = null;
      a.querySelector(".dots")?.remove();
    }
    a ??= article(e.who);
    write(a, e);
    if (e.who === "you" && draft) pending.append(a); // below the answer that is being made
    else entries.append(a);
    if (e.replies) order(a, e);
    if (e.who === "parley" && !draft?.dataset.id) end(); // else it was said beside the reply in the making
    if (document.hidden && !document.title.startsWith("● ")) document.title = "● " + document.title;
    last();
    mark();
    attend();
  },
};

// order puts what the person said while the answer a was being made behind it,
// unless a answers that, too.
function order(a, { replies, also = [] }) {
  const answered = (m) => m.dataset.id === replies || also.includes(m.dataset.id);
  const before = [...entries.children].slice(0, [...entries.children].indexOf(a));
  const last = before.findLastIndex(answered);
  if (last >= 0) a.after(...before.slice(last + 1).filter((m) => m.classList.contains("you")));
  for (const m of taken()) if (answered(m)) a.before(m);
}

// taken are the messages below the answer in the making that are in the log.
const taken = () => [...pending.children].filter((m) => m.dataset.seq);

// use makes the card li show the step s: its arguments while they come in and
// while it runs, and what came of it.
function use(li, s) {
  const [line, body] = li.firstChild.children;
  if (li.dataset.state !== s.status) li.firstChild.open = s.status !== "success";
  Object.assign(li.dataset, { call: s.requestId, tool: s.displayName, state: s.status, tip: s.showTip ?? "" });
  line.dataset.state = s.status;
  line.replaceChildren(make("i", { className: "mark" }), make("span", {}, make("b", {}, s.displayName), " " + (s.showTip ?? ""),
    make("small", {}, s.duration ? ` ${(s.duration / 1000).toFixed(1)} s` : ""), make("span", { className: "unseen" }, ` (${s.status})`)));
  const params = Object.entries(s.params ?? {}).map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, typeof v === "string" ? v : JSON.stringify(v))));
  body.replaceChildren(...(params.length ? [make("dl", {}, ...params)] : []),
    ...(s.error ? [make("p", { className: "bad" }, s.error)] : []), ...(s.result ? [make("p", {}, s.result)] : []));
}

// sum says in one line what the steps are.
function sum(line, steps) {
  const running = steps.findLast((s) => s.state === "doing") ?? steps.findLast((s) => s.state === "wait");
  const failed = steps.filter((s) => s.state === "error").length;
  const tools = [...new Set(steps.map((s) => s.tool))].join(", ");
  line.dataset.state = running ? running.state : failed === steps.length ? "error" : "success";
  const how = running?.state === "doing" ? "running" : "waiting";
  line.lastChild.textContent = running ? `${running.tool} – ` + (running.tip.startsWith(how + " ") ? running.tip : how + (running.tip && `: ${running.tip}`))
    : `${tools} – ` + (failed ? `${failed} of ${steps.length} failed` : steps.length > 1 ? `${steps.length} steps done` : "done");
}

function end() {
  if (draft?.dataset.id) draft = void draft.remove();
  work(false);
  entries.append(...taken());
}

// --- the last answer can be given again

const again = make("button", { type: "button", id: "again", onclick: retry }, "Try again");

function retry() {
  work(true);
  command("/retry").catch(() => work(false)); // it can be pressed again
}

function last() {
  const a = entries.lastElementChild;
  if (a?.classList.contains("parley") && !a.querySelector(".ask") && entries.querySelector("article.you")) a.querySelector("footer").prepend(again);
  else again.remove();
}

// --- scrolling: from the end, where 0 is, upwards

const atEnd = () => scroll.scrollTop > -40;
let length = 0;

export function follow() {
  scroll.scrollTop = 0;
  news();
}

// attend brings what is asked into view, which is above the reply in the making.
function attend() {
  if (draft && atEnd()) entries.lastElementChild?.querySelector(".ask button:enabled")?.closest("article").scrollIntoView({ block: "nearest" });
}

// news offers to go to the end if something is there that was not seen.
function news() {
  const now = scroll.scrollHeight;
  $("down").hidden = atEnd() || ($("down").hidden && now <= length);
  length = now;
}

async function older() {
  const first = entries.dataset.first;
  if ($("older").disabled) return;
  $("older").disabled = true;
  try {
    const { entries: es, more } = await call("GET", `/c/${talk}/before?seq=${Number(first)}`);
    const bottom = scroll.scrollTop, as = es.map((e) => {
      const a = article(e.who);
      write(a, e);
      return a;
    });
    entries.ariaLive = "off"; // it is no news
    entries.prepend(...as);
    requestAnimationFrame(() => (entries.ariaLive = "polite"));
    scroll.scrollTop = bottom;
    length = scroll.scrollHeight;
    entries.dataset.first = es.length ? Math.min(...es.map((e) => e.seq)) : first;
    $("older").hidden = !more;
  } catch {} // the button is still there
  $("older").disabled = false;
}

export function start() {
  entries.querySelectorAll("article").forEach(finish);
  last();
  mark();
  length = scroll.scrollHeight;
  scroll.addEventListener("scroll", () => atEnd() && ($("down").hidden = true), { passive: true });
  $("down").onclick = follow;
  $("older").onclick = older;
  addEventListener("focus", () => (document.title = document.title.replace(/^● /, "")));
  scroll.addEventListener("click", ({ target }) => {
    const choice = target.closest(".ask button");
    if (choice) {
      post({ id: newID(), question: choice.parentNode.dataset.question, choice: Number(choice.dataset.choice) });
      follow();
    }
    if (target.matches(".copy")) copy(target);
  });
  entries.addEventListener("error", (e) => broken(e.target), true);
}

function copy(button) {
  getSelection().selectAllChildren(button.previousElementSibling);
  document.execCommand("copy"); // works without https, too
  getSelection().removeAllRanges();
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
