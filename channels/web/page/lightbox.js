// Pictures and texts of the conversation, one at a time, over the page.

import { dress } from "./blocks.js";
import { read } from "./previews.js";
import { $, icon, make, need, style } from "./wire.js";

style("lightbox.css");

const most = 512 << 10; // bytes of a text
const button = (sign, label, onclick) => make("button", { type: "button", className: "plain", ariaLabel: label, onclick }, icon(sign));

const title = make("h2", { id: "shown" }), count = make("span", { className: "count" });
const save = make("a", { className: "plain save", ariaLabel: "Download" }, icon("down"));
const stage = make("div", { className: "stage" });
const back = button("left", "Previous picture", () => step(-1)), on = button("right", "Next picture", () => step(1));
const dialog = make("dialog", { id: "lightbox" },
  make("div", { className: "top" }, title, count, save, button("close", "Close", () => dialog.close())), stage, back, on);
dialog.setAttribute("aria-labelledby", "shown");
document.body.append(dialog);

let pictures = [], at = 0, opener = null;

// showPicture shows the picture of link a; the arrows lead to the others of the conversation.
export function showPicture(a) {
  pictures = [...$("scroll").querySelectorAll("a.picture:has(img)")];
  if (!pictures.includes(a)) return;
  at = pictures.indexOf(a);
  open(a);
  step(0);
}

function step(by) {
  at = (at + by + pictures.length) % pictures.length;
  const a = pictures[at], name = a.querySelector("img")?.alt ?? "";
  label(name, a.href);
  count.textContent = pictures.length > 1 ? `${at + 1} of ${pictures.length}` : "";
  stage.replaceChildren(make("img", { src: a.href, alt: name }));
  opener = a;
}

// showText shows the text file of a card.
export async function showText(card, from) {
  pictures = [];
  label(card.download, card.href);
  count.textContent = "";
  stage.replaceChildren(make("p", { role: "status" }, "Loading…"));
  open(from);
  let text = null;
  try {
    text = await read(card.href, most);
  } catch {} // it is told below
  if (text === null) return stage.replaceChildren(make("p", { role: "status" }, "This file cannot be shown. Download it to open it."));
  const code = make("code", { className: "language-" + (card.download.split(".").length > 1 ? card.download.split(".").pop() : "") }, text);
  const box = make("div", { className: "text" }, make("pre", {}, code));
  stage.replaceChildren(box, ...(text.length >= most ? [make("p", {}, "This is its beginning. Download it to see all of it.")] : []));
  dress(box);
  need("./highlight.js").then((h) => h.colour(box.querySelector("pre")));
}

function label(name, url) {
  title.textContent = name;
  Object.assign(save, { href: url, download: name });
}

function open(from) {
  opener = from;
  back.hidden = on.hidden = pictures.length < 2;
  dialog.classList.toggle("paper", !pictures.length);
  dialog.showModal();
}

dialog.addEventListener("close", () => {
  stage.replaceChildren();
  opener?.focus({ preventScroll: true });
  opener?.scrollIntoView({ block: "nearest" });
});
dialog.addEventListener("click", ({ target }) => (target === dialog || target === stage) && dialog.close());
dialog.addEventListener("keydown", (e) => {
  if (e.key === "Escape") e.stopPropagation(); // it does not stop the answer
  if (pictures.length < 2 || e.altKey || e.ctrlKey || e.metaKey) return;
  if (e.key === "ArrowLeft") step(-1);
  if (e.key === "ArrowRight") step(1);
});

// A finger can swipe from picture to picture.
let from = null;
stage.addEventListener("pointerdown", (e) => (from = e.pointerType === "touch" && e.isPrimary ? e : null));
stage.addEventListener("pointerup", (e) => {
  const dx = from && pictures.length > 1 ? e.clientX - from.clientX : 0, dy = from ? e.clientY - from.clientY : 0;
  from = null;
  if (Math.abs(dx) > 50 && Math.abs(dx) > 2 * Math.abs(dy)) step(dx < 0 ? 1 : -1);
});
