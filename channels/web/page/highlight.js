// The colours of code, by highlight.js. Few conversations need it.

import { make, style } from "./wire.js";
import library from "./highlight.min.js";

style("highlight.css");

const most = 50_000; // characters; more would take too long

// colour gives the words of pre their colours, and its frame the usual name of its language.
export function colour(pre) {
  const code = pre.firstElementChild, text = code.textContent;
  const name = code.className.replace("language-", ""), language = library.getLanguage(name);
  if (!language || text.length > most) return;
  pre.closest(".code").querySelector(".bar span").textContent = language.name;
  const t = make("template");
  t.innerHTML = library.highlight(text, { language: name, ignoreIllegals: true }).value;
  // The text is a model's. What the library makes of it is taken if it is that text, in words with a class.
  const isPlain = [...t.content.querySelectorAll("*")].every((e) => e.matches("span") && e.attributes.length === 1 && e.hasAttribute("class"));
  if (isPlain && t.content.textContent === text) code.replaceChildren(t.content);
}
