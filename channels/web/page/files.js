// Files in the conversation: what is needed to look into them loads when there are some.

import { $, need } from "./wire.js";

const scroll = $("scroll");

// look shows the beginning of the files of article a that can be looked into.
export function look(a) {
  const files = [...a.querySelectorAll(":scope > .files > li:is([data-kind=text], [data-kind=pdf]):not(.preview)")];
  if (files.length) need("./previews.js").then((p) => files.forEach(p.look));
}

export function start() {
  scroll.addEventListener("click", (e) => {
    const picture = e.target.closest("a.picture");
    if (!picture || e.button || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey) return; // a tab of its own
    e.preventDefault();
    import("./lightbox.js").then((l) => l.showPicture(picture), () => open(picture.href, "_blank", "noopener"));
  });
}
