// The chat page. The server has rendered the conversation up to now.

import { $, listen } from "./wire.js";
import * as branches from "./branches.js";
import * as conversations from "./conversations.js";
import * as phone from "./phone.js";
import * as unread from "./unread.js";
import * as view from "./view.js";
import * as write from "./write.js";

let soon;
listen({
  ...view.handlers,
  message(e) {
    branches.message(e);
    unread.note(e);
  },
  unsent: view.mark,
  wrong: view.showWrong,
  talks() {
    clearTimeout(soon);
    soon = setTimeout(conversations.show, 100);
  },
});
branches.start();
view.start();
write.start();
conversations.start();
phone.start();
unread.start();

addEventListener("keydown", (e) => {
  if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey) {
    e.preventDefault();
    conversations.find();
  }
  if (e.key === "Escape" && view.busy && !document.querySelector("dialog[open], :popover-open") && !$("words").matches(":focus")) write.stop();
});
