// Where the messages are scrolled to. From the end, where 0 is, it goes upwards. At the end the page
// stays there, whatever comes; elsewhere it stays where it is, and a button leads to the end.

import { $ } from "./wire.js";

const scroll = $("scroll"), pill = $("down"), still = matchMedia("(prefers-reduced-motion: reduce)");
let length = 0, unseen = 0; // unseen counts messages that came since the end was last in sight

export const atEnd = () => scroll.scrollTop > -40;

// follow goes to the end.
export function follow() {
  scroll.scrollTop = 0;
  news();
}

// news shows the button if something is at the end that was not there, such as another message.
export function news(messages = 0) {
  const now = scroll.scrollHeight;
  unseen = atEnd() ? 0 : unseen + messages;
  pill.hidden = atEnd() || (pill.hidden && now <= length);
  const text = unseen > 1 ? `${unseen} new messages` : unseen ? "New message" : "New messages";
  if (pill.lastChild.data !== text) pill.lastChild.data = text;
  length = now;
}

// forget takes what there is as seen: it came above what is read.
export const forget = () => (length = scroll.scrollHeight);

export function start() {
  forget();
  scroll.addEventListener("scroll", () => atEnd() && news(), { passive: true });
  pill.onclick = () => {
    const byKeyboard = pill.matches(":focus-visible");
    scroll.scrollTo({ top: 0, behavior: still.matches ? "instant" : "smooth" });
    pill.hidden = true;
    if (byKeyboard) scroll.focus({ preventScroll: true }); // the button is gone
  };
}
