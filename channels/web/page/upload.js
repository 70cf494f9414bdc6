// The files of the message box: chosen, dropped or pasted, uploaded at once, and shown above it.

import { $, make, most, Refused, upload } from "./wire.js";
import { card, size } from "./view.js";

const tray = $("tray"), why = $("why");
const maxFiles = 20; // of one message
const pictures = /^image\/(png|jpeg|gif|webp)$/;

// files are those of the message that is being written: {name, type, size, id, blob, li, abort, failed}.
// Without an id one is being uploaded, or has failed.
export let files = [];
let changed = () => {}, ready = () => {};

export const done = () => files.filter((f) => f.id).map(({ id, name, type, size, voice }) => ({ id, name, type, size, voice }));
export const failed = () => files.some((f) => f.failed);
export const waiting = () => files.some((f) => !f.id && !f.failed);

// clear forgets the files, which belong to a message that was sent.
export function clear() {
  files = [];
  tray.replaceChildren();
}

// take adds a file: one to upload, which has a blob, or one that was uploaded already.
export function take(f) {
  const bar = make("progress", { max: 1, value: 0, ariaLabel: `Uploading ${f.name}` });
  const [sign, name, note] = card(f);
  const picture = f.blob && pictures.test(f.type) && make("img", { src: URL.createObjectURL(f.blob), alt: "", onload: ({ target }) => URL.revokeObjectURL(target.src) });
  const remove = make("button", { type: "button", className: "plain", ariaLabel: `Remove ${f.name}`, onclick: () => leave(f) }, "✕");
  Object.assign(f, { bar, note, li: make("li", { className: "card" }, picture || sign, make("div", {}, name, note), remove) });
  tray.append(f.li);
  files.push(f);
  if (f.blob) check(f) && bring(f);
  changed();
}

// check refuses what cannot be sent before a byte of it is.
function check(f) {
  if (files.indexOf(f) >= maxFiles) return fail(f, `not added: a message can have ${maxFiles} files`, false);
  if (f.folder) return fail(f, "is a folder: drop the files in it", false);
  if (f.size > most) return fail(f, `too big: ${size(most)} is the limit`, false);
  return true;
}

// bring uploads f, again and again while the gateway is out of reach, until it is uploaded, refused or removed.
async function bring(f) {
  f.failed = false;
  f.li.append(f.bar);
  for (let wait = 1000; files.includes(f) && !f.id; wait = Math.min(2 * wait, 15e3)) {
    try {
      const way = upload(f.blob, f.voice, (part) => {
        f.bar.value = part;
        f.note.textContent = part < 1 ? `${Math.floor(part * 100)} % of ${size(f.size)}` : "Checking…";
      });
      f.abort = way.abort;
      Object.assign(f, await way.done);
      f.bar.remove();
      f.note.textContent = size(f.size);
      changed();
      ready();
    } catch (e) {
      if (e instanceof Refused) return fail(f, e.message, true);
      f.bar.removeAttribute("value");
      f.note.textContent = "No connection: trying again";
      await new Promise((next) => (setTimeout(next, wait), addEventListener("online", next, { once: true })));
    }
  }
}

// fail says why f is not uploaded, and offers to try again if that may help.
function fail(f, reason, again) {
  if (!files.includes(f)) return;
  f.failed = true;
  f.bar.remove();
  f.li.classList.add("failed");
  Object.assign(f.note, { textContent: reason, className: "bad" });
  if (again) f.li.lastChild.before(make("button", { type: "button", className: "again", onclick: ({ currentTarget }) => (currentTarget.remove(), retry(f)) }, "Try again"));
  explain();
  changed();
}

function retry(f) {
  f.li.classList.remove("failed");
  f.note.className = "";
  bring(f);
  explain();
  changed();
}

// explain says why a message is held back while a file could not be uploaded, and offers to send it without
// the file.
export function explain() {
  const broken = files.filter((f) => f.failed);
  if (!broken.length) return why.replaceChildren();
  const rest = $("text").value.trim() || files.length > broken.length;
  why.replaceChildren(`${broken.map((f) => f.name).join(", ")} could not be uploaded, so your message is not sent yet.`,
    make("button", { type: "button", onclick: () => (broken.forEach(leave), rest && $("write").requestSubmit()) }, rest ? (broken.length > 1 ? "Send without them" : "Send without it") : "Remove"));
}

function leave(f) {
  files = files.filter((o) => o !== f);
  explain();
  f.abort?.();
  f.li.remove();
  changed();
  $("text").focus();
}

// add takes files that were chosen, dropped or pasted, or says that none may be attached.
export function add(list, entries = []) {
  if (document.body.dataset.blocked.split(" ").includes("block_upload")) {
    why.replaceChildren("The owner has switched off attaching files.");
    return;
  }
  [...list].forEach((f, i) => take({ name: f.name || "file", type: f.type, size: f.size, blob: f, folder: entries[i]?.isDirectory }));
  $("text").focus();
}

// start listens to what brings files. It calls onChange when there are others, and onReady when one is uploaded.
export function start(onChange, onReady) {
  [changed, ready] = [onChange, onReady];
  $("attach").onclick = () => { $("pick").click(); };
  $("pick").onchange = () => {
    add($("pick").files);
    $("pick").value = "";
  };
  addEventListener("paste", (e) => e.clipboardData.files.length && (e.preventDefault(), add(e.clipboardData.files)));

  const root = document.documentElement, carried = (e) => e.dataTransfer?.types.includes("Files");
  addEventListener("dragover", (e) => carried(e) && (e.preventDefault(), root.classList.add("drop")));
  addEventListener("dragleave", (e) => e.relatedTarget || root.classList.remove("drop"));
  addEventListener("drop", (e) => {
    root.classList.remove("drop");
    if (!carried(e)) return;
    e.preventDefault();
    add(e.dataTransfer.files, [...e.dataTransfer.items].filter((i) => i.kind === "file").map((i) => i.webkitGetAsEntry?.()));
  });
  addEventListener("beforeunload", (e) => waiting() && e.preventDefault());
}
