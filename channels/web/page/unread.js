// What was not seen yet: marks in the list, a number in the title and on the icon of the tab. The conversation that
// is open in a visible tab counts as seen, whatever was said in it, but for questions.

import { $, call, make, talk } from "./wire.js";

const visible = () => document.visibilityState === "visible";

let list = [], title = document.title, latest = Number(document.body.dataset.last), told = 0, soon;

// mark returns the mark of a conversation in the list: that it waits for an answer, or how much is new.
export function mark(t) {
  const badge = (className, title, n, said) => [make("span", { className, title }, String(n), make("span", { className: "unseen" }, said))];
  if (t.asks) return badge("badge", "Waiting for your answer", t.asks, " waiting for your answer: ");
  return t.unread && t.id !== talk ? badge("badge new", "New messages", t.unread, " new: ") : [];
}

// count takes over the list of conversations.
export function count(found) {
  list = found;
  paint();
}

// name sets the title of the open conversation.
export function name(to) {
  title = `${to} – Parley`;
  paint();
}

// note takes notice of an entry that was shown.
export function note(e) {
  if (e.seq > latest) latest = e.seq;
  tell();
}

// tell tells the gateway how far this person has seen the conversation, if they see it.
function tell(pause = told ? 200 : 0) {
  if (!visible() || latest <= told) return;
  clearTimeout(soon);
  soon = setTimeout(async () => {
    if (!visible()) return; // what has come since was not seen
    const seq = latest;
    try {
      await call("POST", `/c/${talk}/seen`, { seq });
      told = Math.max(told, seq);
    } catch {} // the next entry, or the next look at the tab, tells it
  }, pause);
}

let shown = -1;

// paint shows the number in the title, and on the icons of the tab and of the app. A question counts until it is
// answered, also if it is in sight.
function paint() {
  const n = list.reduce((sum, t) => sum + Math.max(t.id === talk && visible() ? 0 : (t.unread ?? 0), t.asks ?? 0), 0);
  document.title = n ? `(${n}) ${title}` : title;
  const others = list.reduce((sum, t) => sum + (t.id === talk ? 0 : Math.max(t.unread ?? 0, t.asks ?? 0)), 0);
  const menu = $("menu"); // all that is seen of the list on a phone
  others ? (menu.dataset.news = others > 9 ? "9+" : others) : delete menu.dataset.news;
  menu.ariaLabel = others ? `Conversations, ${others} new` : "Conversations";
  if (n === shown) return;
  shown = n;
  n ? navigator.setAppBadge?.(n).catch(() => {}) : navigator.clearAppBadge?.().catch(() => {});
  badge(n);
}

const link = document.querySelector("link[rel=icon]"), plain = link.href;

// badge draws the number on the icon of the tab.
function badge(n) {
  if (!n) return void (link.href = plain);
  const icon = new Image(64, 64);
  icon.onload = () => {
    if (shown !== n) return;
    const canvas = make("canvas", { width: 64, height: 64 }), c = canvas.getContext("2d");
    c.drawImage(icon, 0, 0, 64, 64);
    c.fillStyle = "#c62f23";
    c.beginPath();
    c.arc(44, 20, 20, 0, 7);
    c.fill();
    Object.assign(c, { fillStyle: "#fff", font: "700 28px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
    c.fillText(n > 9 ? "9+" : String(n), 44, 21);
    link.href = canvas.toDataURL();
  };
  icon.src = plain;
}

export function start() {
  document.addEventListener("visibilitychange", () => (paint(), tell(0)));
  tell();
}
