// The chat page. The server has drawn what was said; this takes it from there.

import { $, listen } from "./wire.js";
import * as talks from "./talks.js";
import * as view from "./view.js";
import * as write from "./write.js";

let soon;
listen({
  ...view.hear,
  unsent: view.mark,
  talks() {
    clearTimeout(soon);
    soon = setTimeout(talks.show, 100);
  },
});
view.start();
write.start();
talks.start();

addEventListener("keydown", (e) => {
  if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey) {
    e.preventDefault();
    talks.find();
  }
  if (e.key === "Escape" && view.busy && !document.querySelector("dialog[open], :popover-open") && !$("words").matches(":focus")) write.stop();
});

// Phones put their keyboard over the page: the page ends where it begins.
const seen = window.visualViewport;
seen?.addEventListener("resize", () => {
  document.body.style.height = seen.scale === 1 && innerHeight - seen.height > 60 ? seen.height + "px" : "";
});
