// Questions that wait for an answer and are out of sight: a line at the top leads to the latest of them.

import { $, style } from "./wire.js";
import { hold } from "./view.js";

const line = $("here"), button = line.firstElementChild, inSight = new Set();

const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) isIntersecting ? inSight.add(target) : inSight.delete(target);
  show();
}, { root: $("scroll") });

// away returns the buttons of the latest question that waits out of sight.
const away = () => [...document.querySelectorAll(".asks > .ask")].findLast((box) => !inSight.has(box) && box.querySelector("button:enabled"));

// show shows the line, or hides it.
function show() {
  const box = away();
  line.hidden = !box;
  if (!box) return;
  const what = box.closest("article").querySelector(".text > :first-child")?.textContent ?? "";
  const text = `Your answer is needed: ${what}`;
  if (button.textContent !== text) button.textContent = text;
}

// watch looks after the question of article a.
export function watch(a) {
  const box = a.querySelector(":scope > .ask");
  if (box) watcher.observe(box);
  else if (!line.hidden) show();
}

button.onclick = () => {
  const a = away()?.closest("article");
  if (!a) return;
  a.scrollIntoView({ block: a.offsetHeight > $("scroll").clientHeight ? "end" : "center" });
  hold(a);
};
if (!$("cards")) style("cards.css");
