// The chat page. The server has rendered the conversation up to now.

import { $, listen, need, person } from "./wire.js";
import * as branches from "./branches.js";
import * as conversations from "./conversations.js";
import * as menus from "./menus.js";
import * as phone from "./phone.js";
import * as unread from "./unread.js";
import * as view from "./view.js";
import * as write from "./write.js";

// Notifications are loaded when somebody asks for them, or has asked for them before.
const notify = () => need("./notify.js");
const notifies = () => localStorage.getItem(`notify/${person}`);

// What questions need is loaded with the first thing that is said: it is there when one is asked.
const cards = () => need("./cards.js");

let soon;
listen({
  ...view.handlers,
  message(e) {
    cards();
    branches.message(e);
    unread.note(e);
    if (notifies()) notify().then((n) => n.note(e, $("title").textContent));
  },
  unsent: view.mark,
  wrong: view.showWrong,
  talks() {
    clearTimeout(soon);
    soon = setTimeout(conversations.show, 100);
  },
});
branches.start();
view.extend((a) => a.querySelector(":scope > :is(.ask, .outcome)") && cards().then((c) => c.watch(a)));
view.start();
write.start();
conversations.start();
menus.start();
phone.start();
unread.start();

navigator.serviceWorker?.register("/app/worker.js", { scope: "/", updateViaCache: "none" }).catch(() => {}); // it is an extra
$("bell").onclick = () => { notify().then((n) => n.open()); };
if (notifies()) notify().then((n) => n.start());

addEventListener("keydown", (e) => {
  if (e.key.toLowerCase() === "k" && (e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey) {
    e.preventDefault();
    conversations.find();
  }
  if (e.key === "Escape" && view.busy && !document.querySelector("dialog[open], :popover-open") && !$("words").matches(":focus")) write.stop();
});
