// What can be done with a message: copy it, change it and send it again, ask for another
// answer, and go back to an earlier version of either.

import { $, call, icon, make, newID, talk } from "./wire.js";
import { busy, extend, handlers, renew, sourceOf } from "./view.js";

const scroll = $("scroll"), entries = $("entries");
const url = (what) => `/c/${talk}/${what}`;

const act = (className, name, label, onclick) =>
  make("button", { type: "button", className: "act " + className, ariaLabel: label, title: label, onclick }, icon(name));

// --- other branches

let asked = new Set(); // IDs of entries that ask for another answer

// message shows a new entry. One that begins or chooses a branch changes what is shown
// before it, and so does another answer.
export function message(e) {
  if (e.again) asked.add(e.id);
  if (e.from === undefined && !asked.has(e.replies)) {
    dirty = true; // what is being loaded may be without it
    return handlers.message(e);
  }
  asked.delete(e.replies);
  if (e.who === "parley" && e.from === undefined) handlers.message(e); // it takes the place of its draft
  return reload();
}

let loading, dirty;

// reload shows the branch under way.
function reload() {
  dirty = true;
  return (loading ??= load().finally(() => (loading = undefined)));
}

async function load() {
  for (let wait = 1000; dirty; ) {
    dirty = false;
    try {
      const { entries: es, more } = await call("GET", url("before?seq=" + Number.MAX_SAFE_INTEGER));
      if (dirty) continue;
      const at = anchor && place(anchor);
      renew(es, more);
      if (at !== undefined && place(anchor) !== undefined) scroll.scrollTop += place(anchor) - at;
    } catch (e) {
      if (e.status) return; // the conversation is gone
      dirty = true;
      await new Promise((done) => setTimeout(done, (wait = Math.min(2 * wait, 15e3))));
    }
  }
  const focus = anchor && entries.querySelector(`[data-versions="${anchor}"] .versions button:enabled`);
  if (focus && document.activeElement === document.body) focus.focus({ preventScroll: true });
  anchor = undefined;
}

let anchor; // the versions of the message that is to stay where it is
const place = (versions) => entries.querySelector(`[data-versions="${versions}"]`)?.getBoundingClientRect().bottom;

// choose goes on with another version.
async function choose(a, by) {
  const all = a.dataset.versions.split(" ");
  const to = all[Number(a.dataset.version) + by];
  if (!to || busy) return;
  anchor = a.dataset.versions;
  try {
    await call("POST", url("version"), { version: Number(to) });
  } catch (e) {
    say(a, e.status ? e.message : "That did not work. Please try again.");
  }
}

// regenerate asks for another answer than a.
async function regenerate(a) {
  if (busy) return;
  const button = a.querySelector(".redo"), id = (button.dataset.id ||= newID()); // pressed again, it is the same request
  asked.add(id);
  button.disabled = true;
  handlers.busy({ on: true });
  try {
    await call("POST", url("messages"), { id, text: "", files: [], again: Number(a.dataset.seq) });
    return;
  } catch (e) {
    handlers.busy({ on: false });
    say(a, e.status ? e.message : "That did not work. Please try again.");
  }
  button.disabled = false;
}

// say shows in a's footer why something did not work.
function say(a, text) {
  a.querySelector("footer .failed")?.remove();
  a.querySelector("footer").append(make("span", { className: "bad failed", role: "alert" }, text));
}

// --- changing a message

function edit(a) {
  if (a.querySelector(".change")) return;
  const text = a.querySelector(":scope > .text"), id = newID();
  const area = make("textarea", { value: text.textContent, ariaLabel: "Change your message" });
  const problem = make("p", { className: "bad", role: "alert" });
  const send = make("button", { className: "main" }, "Send");
  const files = [...a.querySelectorAll(".files a")].map((f) => f.pathname.split("/")[2]);
  const close = () => {
    form.remove();
    a.classList.remove("changing");
    a.querySelector(".pen")?.focus();
  };
  const fit = () => {
    if (CSS.supports("field-sizing", "content")) return;
    area.style.height = "auto";
    area.style.height = area.scrollHeight + "px";
  };
  const submit = async (e) => {
    e?.preventDefault();
    const words = area.value.trim();
    if (!words && !files.length || send.disabled) return;
    if (words === text.textContent.trim()) return close();
    send.disabled = true;
    problem.textContent = "";
    try {
      await call("POST", url("messages"), { id, text: words, files, instead: Number(a.dataset.seq) });
      $("text").focus();
      scroll.scrollTop = 0;
    } catch (e) {
      problem.textContent = e.status ? e.message : "Parley did not answer. Please send it again.";
      send.disabled = false;
    }
  };
  const form = make("form", { className: "change", onsubmit: submit }, area,
    make("div", {}, make("small", {}, "What follows stays as an earlier version."),
      make("button", { type: "button", onclick: close }, "Cancel"), send), problem);
  area.oninput = fit;
  area.onkeydown = (e) => {
    if (e.key === "Escape") e.stopPropagation(), close();
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing && !matchMedia("(hover: none) and (pointer: coarse)").matches) submit(e);
  };
  a.classList.add("changing");
  text.after(form);
  fit();
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
}

// copy puts what was written in a on the clipboard.
async function copy(a, button) {
  const source = sourceOf(a);
  try {
    await put(source);
  } catch (e) {
    return say(a, e.status ? e.message : "That did not work. Please try again.");
  }
  a.querySelector("footer .failed")?.remove();
  button.firstChild.replaceWith(icon("done"));
  button.ariaLabel = "Copied";
  setTimeout(() => {
    button.firstChild.replaceWith(icon("copy"));
    button.ariaLabel = "Copy";
  }, 1500);
}

// put puts on the clipboard what source resolves to. Some browsers only take what they are promised during the click.
async function put(source) {
  try {
    return await navigator.clipboard.write([new ClipboardItem({ "text/plain": source.then((text) => new Blob([text], { type: "text/plain" })) })]);
  } catch {} // without https, or without permission
  const area = make("textarea", { value: await source }), before = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus({ preventScroll: true });
  if (!done) throw new Error("the browser does not let us copy");
}

// isCommand reports whether a begins with a command, unlike a path such as /etc/hosts. The server does the same.
const isCommand = (a) => /^\s*\/[a-z][\w-]{0,31}(@\w+)?(\s|$)/i.test(a.querySelector(":scope > .text").textContent);

// canRepeat reports whether another answer than a can be asked for.
function canRepeat(a) {
  if (!a.dataset.replies || a.matches(".asks")) return false;
  const to = document.querySelector(`article.you[data-id="${CSS.escape(a.dataset.replies)}"]`);
  return !to || !isCommand(to);
}

// dress gives the article a its buttons.
function dress(a) {
  const footer = a.querySelector(":scope > footer");
  footer.querySelector(":scope > .acts")?.remove();
  if (!a.dataset.seq || a.classList.contains("note")) return;
  const acts = make("div", { className: "acts", role: "group", ariaLabel: "This message" });
  if (a.dataset.versions) {
    const which = Number(a.dataset.version), count = a.dataset.versions.split(" ").length;
    const back = act("back", "left", "Earlier version", () => choose(a, -1));
    const on = act("on", "right", "Later version", () => choose(a, 1));
    back.disabled = which === 0;
    on.disabled = which === count - 1;
    acts.append(make("span", { className: "versions", role: "group", ariaLabel: `Version ${which + 1} of ${count}` }, back, `${which + 1}/${count}`, on));
  }
  const button = act("", "copy", "Copy", () => copy(a, button));
  acts.append(button);
  if (a.classList.contains("you") && !isCommand(a)) acts.append(act("pen", "pen", "Change and send again", () => edit(a)));
  if (a.classList.contains("parley") && canRepeat(a)) acts.append(act("redo", "again", "Answer again", () => regenerate(a)));
  footer.prepend(acts);
}

export const start = () => extend(dress);
