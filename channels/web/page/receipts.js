// How the steps to a reply can be checked: when each was made, who approved it, and its receipt. Loaded with the steps.

import { make, style } from "./wire.js";

style("receipts.css");

const clock = (at) => new Date(at).toLocaleTimeString([], { hour: "numeric", minute: "2-digit", second: "2-digit" });

// attest adds to the card li of step s what can be checked of it, and says so at once if that does not fit.
export function attest(li, s) {
  const [line, body] = li.firstChild.children, { digest, by, note, altered } = s.receipt ?? {};
  if (altered) {
    li.dataset.altered = "";
    line.querySelector("em, .unseen").replaceWith(make("em", {}, "altered"));
  }
  const facts = [
    s.startTime && make("time", { dateTime: s.startTime, title: new Date(s.startTime).toLocaleString([], { dateStyle: "full", timeStyle: "medium" }) }, clock(s.startTime)),
    by && make("span", {}, "approved by ", make("bdi", {}, by)),
    digest && make("span", {}, "receipt ", make("code", {}, digest)),
  ].filter(Boolean);
  if (note) body.append(make("p", { className: altered ? "note bad" : "note" }, note[0].toUpperCase() + note.slice(1) + "."));
  if (facts.length) body.append(make("div", { className: "facts" }, ...facts));
}

// legend says below steps what a receipt is, if any has one.
export const legend = (steps) => steps.some((s) => s.receipt?.digest)
  ? [make("p", { className: "legend" }, "A receipt stands for one call and its result. The audit log has it, too.")] : [];
