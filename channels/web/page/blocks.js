// The blocks of an answer. What is finished keeps its elements while the rest is being
// written, and gets what it needs: code a frame, tables room, formulas their look.

import { atEnd } from "./scroll.js";
import { $, make, need } from "./wire.js";

const sources = new WeakMap(); // elements that show something else than the server sent: what it sent
const dressed = new WeakSet(); // blocks that have what they need

// render makes html, which the server has made safe, the content of e. Elements whose
// content is the same stay, and with them selections, focus and scroll positions. The
// last block of an answer that is not over is not finished.
export function render(e, html, isOver = true) {
  const t = make("template");
  t.innerHTML = html;
  adapt(e, t.content);
  dress(e, isOver);
}

// adapt makes the content of fresh that of old.
function adapt(old, fresh) {
  const before = [...old.childNodes], after = [...fresh.childNodes];
  after.forEach((n, i) => {
    const o = before[i];
    if (!o) old.append(n);
    else if (isSame(o, n)) return;
    else if (sources.has(o) || o.nodeName !== n.nodeName) o.replaceWith(n);
    else if (o.nodeType === Node.TEXT_NODE) n.data.startsWith(o.data) ? o.appendData(n.data.slice(o.length)) : (o.data = n.data);
    else {
      dressed.delete(o);
      for (const { name } of [...o.attributes]) if (!n.hasAttribute(name)) o.removeAttribute(name);
      for (const { name, value } of n.attributes) if (o.getAttribute(name) !== value) o.setAttribute(name, value);
      adapt(o, n);
    }
  });
  before.slice(after.length).forEach((o) => o.remove());
}

const isSame = (o, n) => (sources.has(o) ? sources.get(o) === n.outerHTML : o.isEqualNode(n));

// dress gives the finished blocks of e what they need.
export function dress(e, isOver = true) {
  const blocks = [...e.children];
  if (!isOver) blocks.pop();
  for (const block of blocks) {
    if (dressed.has(block)) continue;
    dressed.add(block);
    all(block, "pre").forEach(frame);
    all(block, "table").forEach(widen);
    const formulas = all(block, ".math").filter((f) => !sources.has(f));
    if (formulas.length) need("./maths.js").then((m) => formulas.forEach(m.show));
  }
}

const all = (e, css) => [...(e.matches(css) ? [e] : []), ...e.querySelectorAll(css)];

// replace puts shown, which shows what e has, in the place of e.
function replace(e, shown) {
  sources.set(shown, e.outerHTML);
  dressed.add(shown);
  e.replaceWith(shown);
}

// fill gives e the content that shows what it has.
export function fill(e, ...shown) {
  sources.set(e, e.outerHTML);
  e.replaceChildren(...shown);
}

// move puts e, which is in sight where it goes to, at the end of parent. What is selected, focused and
// scrolled within it stays so, and so does what is read of it.
export function move(e, parent) {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = getSelection(), active = document.activeElement;
  const scrolled = [...e.querySelectorAll("pre, .wide, .math")].filter((o) => o.scrollLeft).map((o) => [o, o.scrollLeft]);
  const top = e.isConnected && !atEnd() && e.getBoundingClientRect().top;
  parent.append(e);
  if (e.contains(anchorNode) || e.contains(focusNode)) getSelection().setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
  for (const [o, left] of scrolled) o.scrollLeft = left;
  if (e.contains(active)) active.focus({ preventScroll: true });
  if (top !== false) $("scroll").scrollTop += e.getBoundingClientRect().top - top;
}

// --- code

const plain = ["", "text", "txt", "plain", "plaintext", "mermaid", "csv", "log", "output"]; // never coloured
const labels = { "": "Text", mermaid: "Diagram (Mermaid)", txt: "Text", plaintext: "Text" };

// frame puts pre into a frame that names its language and can copy it.
function frame(pre) {
  if (pre.closest(".code")) return;
  const language = (pre.firstElementChild?.className ?? "").replace("language-", ""), lower = language.toLowerCase();
  const label = make("span", {}, labels[lower] ?? language);
  const box = make("div", { className: "code" },
    make("div", { className: "bar" }, label, make("button", { type: "button", className: "copy", ariaLabel: `Copy ${label.textContent}` }, "Copy")));
  replace(pre, box);
  Object.assign(pre, { tabIndex: 0, role: "group", ariaLabel: `Code: ${label.textContent}` }); // for scrolling with the keyboard
  box.append(pre);
  if (!plain.includes(lower)) nearby.observe(pre);
}

// nearby colours code when it is about to be seen.
const nearby = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    nearby.unobserve(target);
    need("./highlight.js").then((h) => h.colour(target));
  }
}, { root: $("scroll"), rootMargin: "400px" });

async function copy(button) {
  const pre = button.closest(".code").querySelector("pre");
  try {
    await navigator.clipboard.writeText(pre.textContent);
  } catch { // without https, or without permission
    getSelection().selectAllChildren(pre);
    document.execCommand("copy");
    getSelection().removeAllRanges();
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

document.addEventListener("click", ({ target }) => target.matches(".code .copy") && copy(target));

// --- tables

// widen lets a table scroll by itself.
function widen(table) {
  const box = make("div", { className: "wide", role: "group", ariaLabel: "Table" });
  replace(table, box);
  box.append(table);
  reach.observe(box);
}

// reach lets the keyboard scroll what is wider than its place.
const reach = new ResizeObserver((changed) => {
  for (const { target } of changed) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }
});
