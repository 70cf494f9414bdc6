// The beginning of files: the first lines of a text, the first page of a PDF.

import { $, make } from "./wire.js";

const most = 4000; // bytes that are read of a text

export const look = (li) => nearby.observe(li);

// nearby looks into a file when it is about to be seen.
const nearby = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    nearby.unobserve(target);
    const card = target.querySelector("a.card");
    if (target.classList.contains("preview") || !card) continue;
    target.dataset.kind === "pdf" ? showPage(target, card) : showLines(target, card);
  }
}, { root: $("scroll"), rootMargin: "400px" });

// read returns the first bytes of the file at url as text; null if it is none.
export async function read(url, bytes) {
  const r = await fetch(url, { headers: { Range: `bytes=0-${bytes - 1}` } });
  if (r.status === 416) return ""; // it is empty
  if (!r.ok) return null;
  const text = new TextDecoder().decode(await r.arrayBuffer(), { stream: true });
  return /[\0\ufffd]/.test(text) ? null : text;
}

async function showLines(li, card) {
  let text = null;
  try {
    text = await read(card.href, most);
  } catch {} // it stays a card
  if (!text?.trim()) return;
  const lines = text.split("\n").slice(0, 7).map((line) => line.slice(0, 200)).join("\n");
  const open = make("button", { type: "button", ariaLabel: `Open ${card.download}` }, "Open");
  open.onclick = () => { import("./lightbox.js").then((l) => l.showText(card, open), () => card.click()); };
  li.classList.add("preview");
  li.prepend(make("pre", {}, lines));
  li.append(open);
}

// showPage shows a PDF in the browser's own viewer, which gets it in a sandbox, if there is one.
function showPage(li, card) {
  if (!navigator.pdfViewerEnabled) return;
  const open = make("a", { className: "open", href: card.href, target: "_blank", rel: "noopener", ariaLabel: `Open ${card.download}` }, "Open");
  li.classList.add("preview");
  li.prepend(make("iframe", { src: `${card.href}#page=1&view=FitH&toolbar=0&navpanes=0`, title: `First page of ${card.download}`, loading: "lazy", tabIndex: -1 }));
  li.append(open);
}
