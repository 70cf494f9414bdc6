// Formulas, by Temml: TeX becomes MathML, which browsers show by themselves.

import { fill } from "./blocks.js";
import { make, script, style } from "./wire.js";

style("maths.css");

let library;

// load loads the library, once. If that fails for good, the next formula tries again.
const load = () => (library ??= script("temml.min.js").then(() => temml).catch((e) => {
  library = null;
  throw e;
}));

// show shows the TeX of e, which is between its marks, as a formula. What Temml cannot read stays as it is.
export async function show(e) {
  const text = e.textContent, wide = /^(\$\$|\\\[)/.test(text), mark = text.startsWith("$") && !wide ? 1 : 2;
  const box = make("span");
  try {
    (await load()).render(text.slice(mark, -mark), box, { displayMode: wide, throwOnError: true, maxExpand: 500, maxSize: [25, 50] });
  } catch {
    return e.classList.add("raw");
  }
  if (!e.isConnected || e.textContent !== text) return;
  // The TeX is a model's: it must not name elements of the page, nor lead anywhere.
  for (const inner of box.querySelectorAll("*")) for (const name of ["id", "href", "src"]) inner.removeAttribute(name);
  if (box.querySelector("a, img, script")) return;
  fill(e, ...box.childNodes);
  e.classList.toggle("display", wide);
  if (wide || e.getBoundingClientRect().width > e.closest(".text").clientWidth) Object.assign(e, { tabIndex: 0, role: "group", ariaLabel: "Formula" });
}
