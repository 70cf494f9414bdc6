// The message box: text, files, and the button to send or stop.

import { $, command, keep, kept, make, most, newID, post, Refused, unsent, upload } from "./wire.js";
import { busy, card, follow, onBusy } from "./view.js";

const text = $("text"), tray = $("tray"), send = $("send"), why = $("why");
let files = []; // {name, type, size, id, li, abort}; without an id it is being uploaded
let wanted = false; // send as soon as the files are uploaded

const words = () => text.value.trim();
const empty = () => !words() && !files.length;

// show sets the button to send or stop and fits the height of the text.
function show() {
  const stop = busy && empty();
  send.ariaLabel = stop ? "Stop" : wanted ? "Sends when the files are uploaded" : "Send";
  send.firstElementChild.firstElementChild.setAttribute("href", stop ? "#i-stop" : "#i-send");
  send.disabled = !stop && (wanted || empty());
  if (!CSS.supports("field-sizing", "content")) {
    text.style.height = "auto";
    text.style.height = text.scrollHeight + "px";
  }
}

function remember() {
  const there = files.filter((f) => f.id).map(({ id, name, type, size }) => ({ id, name, type, size }));
  keep("draft", !empty() && { text: text.value, files: there });
  show();
}

function submit() {
  if (empty()) return busy && stop();
  if (files.some((f) => f.failed)) return explain();
  wanted = files.some((f) => !f.id);
  if (wanted) return show();
  const there = files.map(({ id, name, type, size }) => ({ id, name, type, size }));
  post({ id: newID(), text: text.value.trim(), files: there, time: Date.now() });
  text.value = "";
  files = [];
  tray.replaceChildren();
  remember();
  follow();
  text.focus();
}

export const stop = () => command("/stop").catch(() => {}); // it can be pressed again

// --- files

function add(list) {
  for (const f of list) take({ name: f.name || "file", type: f.type, size: f.size, blob: f });
  text.focus();
}

function take(f) {
  const bar = make("progress", { max: 1, value: 0, ariaLabel: `Uploading ${f.name}` });
  const [sign, ...rest] = card(f);
  const picture = f.blob && /^image\/(png|jpeg|gif|webp)$/.test(f.type) && make("img", { src: URL.createObjectURL(f.blob), alt: "" });
  const remove = make("button", { type: "button", className: "plain", ariaLabel: `Remove ${f.name}`, onclick: () => leave(f) }, "✕");
  f.li = make("li", { className: "card" }, picture || sign, ...rest, ...(f.id ? [] : [bar]), remove);
  tray.append(f.li);
  files.push(f);
  if (f.blob && f.size > most) fail(f, `too big: ${Math.floor(most / (1 << 20))} MB is the limit`);
  else if (f.blob) bring(f, bar);
  remember();
}

// bring uploads f with retries until it succeeds, is refused, or f is removed.
async function bring(f, bar) {
  for (let wait = 1000; files.includes(f) && !f.id; wait = Math.min(2 * wait, 15e3)) {
    try {
      const way = upload(f.blob, (part) => (bar.value = part));
      f.abort = way.abort;
      Object.assign(f, await way.done);
      bar.remove();
      remember();
      if (wanted) submit();
    } catch (e) {
      if (e instanceof Refused) return fail(f, e.message);
      bar.removeAttribute("value");
      await new Promise((done) => (setTimeout(done, wait), addEventListener("online", done, { once: true })));
    }
  }
}

function fail(f, reason) {
  if (!files.includes(f)) return;
  f.failed = true;
  wanted = false;
  f.li.querySelector("progress")?.remove();
  f.li.querySelector("small").replaceWith(make("small", { className: "bad" }, reason));
  explain();
  show();
}

// explain shows why a message is held back while a file could not be uploaded, and
// offers to send it without the file.
function explain() {
  const broken = files.filter((f) => f.failed);
  if (!broken.length) return why.replaceChildren();
  const rest = words() || files.length > broken.length;
  why.replaceChildren(`${broken.map((f) => f.name).join(", ")} could not be uploaded, so your message is not sent yet.`,
    make("button", { type: "button", onclick: () => (broken.forEach(leave), rest && submit()) }, rest ? (broken.length > 1 ? "Send without them" : "Send without it") : "Remove"));
}

function leave(f) {
  files = files.filter((o) => o !== f);
  explain();
  f.abort?.();
  f.li.remove();
  remember();
  text.focus();
}

export function start() {
  const draft = kept("draft");
  if (draft && !text.value) text.value = draft.text;
  draft?.files.forEach(take);
  text.addEventListener("input", remember);
  onBusy(show);
  show();

  const touch = matchMedia("(hover: none) and (pointer: coarse)");
  text.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing || touch.matches) return;
    e.preventDefault();
    submit();
  });
  $("write").addEventListener("submit", (e) => (e.preventDefault(), submit()));
  $("try").onclick = ({ target }) => {
    if (!target.matches("button")) return;
    post({ id: newID(), text: target.textContent, files: [], time: Date.now() });
    follow();
    text.focus();
  };
  $("attach").onclick = () => $("pick").click();
  $("pick").onchange = () => (add($("pick").files), ($("pick").value = ""));
  addEventListener("paste", (e) => e.clipboardData.files.length && (e.preventDefault(), add(e.clipboardData.files)));

  const root = document.documentElement, carried = (e) => e.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (e) => carried(e) && (e.preventDefault(), root.classList.add("drop")));
  addEventListener("dragleave", (e) => e.relatedTarget || root.classList.remove("drop"));
  addEventListener("drop", (e) => {
    root.classList.remove("drop");
    if (carried(e)) e.preventDefault(), add(e.dataTransfer.files);
  });
  addEventListener("beforeunload", (e) => files.some((f) => !f.id && !f.failed) && e.preventDefault());
}
