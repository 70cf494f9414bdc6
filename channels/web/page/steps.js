// The steps to a reply: while it is being written, and folded into one line above it later. What became of each is
// loaded when somebody wants to see it.

import { call, make, talk } from "./wire.js";

const lines = 6; // of a result that are shown first
const said = { wait: "waiting", doing: "running", success: "done", error: "failed", refused: "not allowed", interrupted: "interrupted" };

// fold makes the steps of article a, whose entry e has come, one line; one that somebody opened stays open.
export function fold(a, e) {
  if (e.taken?.all === 0 && !a.querySelector("footer .none")) a.querySelector("footer").append(make("small", { className: "none" }, "no tools used"));
  const old = a.querySelector(":scope > .steps");
  if (old && old.dataset.mine === undefined) old.removeAttribute("open");
  if (e.steps && !e.stepsLabel && !old) a.prepend(make("p", { className: "steps" }, e.steps));
  if (!e.stepsLabel) return;
  const box = old ?? make("details", { className: "steps" }, make("summary", {}, make("i", { className: "mark" }), make("span")), make("ul"));
  box.dataset.reply = e.stepsOf ?? e.id;
  box.title = e.steps;
  const line = box.firstChild;
  delete line.dataset.state;
  line.lastChild.textContent = e.stepsLabel;
  if (!old) a.prepend(box);
  open(box);
}

// step shows news of a step of the reply that article a is to have. It returns whether the step begins.
export function step(a, s) {
  let box = a.querySelector(":scope > .steps");
  if (!box) {
    box = make("details", { className: "steps", open: true }, make("summary", {}, make("i", { className: "mark" }), make("span")), make("ul"));
    box.firstChild.onclick = () => { box.dataset.mine = ""; };
    a.prepend(box);
  }
  const list = box.querySelector("ul");
  let li = [...list.children].find((l) => l.dataset.call === s.requestId);
  const begins = !li;
  if (begins) list.append((li = row()));
  show(li, s);
  sum(box.firstChild, [...list.children].map((l) => l.dataset));
  return begins;
}

// words returns what was said between two steps. The server has rendered it.
function words(html) {
  const li = make("li", { className: "words" });
  li.innerHTML = html;
  return li;
}

const row = () => make("li", {}, make("details", {}, make("summary"), make("div")));

// show fills the card li with tool call s: its arguments, and its result.
function show(li, s) {
  const [line, body] = li.firstChild.children;
  const over = s.status !== "wait" && s.status !== "doing";
  if (li.dataset.state !== s.status) li.firstChild.open = !over || s.status === "error";
  Object.assign(li.dataset, { call: s.requestId, tool: s.displayName, state: s.status, tip: s.showTip ?? "" });
  line.dataset.state = s.status;
  const note = over && s.status !== "success" ? make("em", {}, said[s.status]) : make("span", { className: "unseen" }, ` (${said[s.status]})`);
  line.replaceChildren(make("i", { className: "mark" }),
    make("span", {}, make("b", {}, s.displayName), " " + (s.showTip ?? "")), note, make("small", {}, s.duration ? ` ${(s.duration / 1000).toFixed(1)} s` : ""));
  const params = Object.entries(s.params ?? {}).map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, typeof v === "string" ? v : JSON.stringify(v))));
  body.replaceChildren(...(params.length ? [make("dl", {}, ...params)] : []),
    ...(s.error ? [make("p", { className: s.status === "error" ? "bad" : "why" }, s.error)] : []), ...(s.result ? result(s.result) : []),
    ...(s.pictures ?? []).map((src) => make("a", { className: "picture", href: src, target: "_blank" }, make("img", { src, alt: "Picture of this step", loading: "lazy" }))));
}

// result shows the first lines of a result, and the rest on demand.
function result(text) {
  const all = text.split("\n"), first = all.slice(0, lines).join("\n").slice(0, 600);
  const p = make("p", { className: "result" }, first);
  if (first === text) return [p];
  const more = make("button", { type: "button", className: "more" }, "Show more");
  more.onclick = () => {
    const isOpen = p.textContent !== first;
    p.textContent = isOpen ? first : text;
    more.textContent = isOpen ? "Show more" : "Show less";
  };
  return [p, more];
}

// sum summarises the tool calls in one line.
function sum(line, steps) {
  const count = (state) => steps.filter((s) => s.state === state).length;
  const running = steps.findLast((s) => s.state === "doing") ?? steps.findLast((s) => s.state === "wait");
  const failed = count("error"), refused = count("refused");
  const tools = [...new Set(steps.map((s) => s.tool))].join(", ");
  line.dataset.state = running ? running.state : failed === steps.length ? "error" : refused === steps.length ? "refused" : "success";
  const how = said[running?.state];
  const ends = [failed && `${failed} of ${steps.length} failed`, refused && `${refused} not allowed`].filter(Boolean).join(", ");
  line.lastChild.textContent = running ? `${running.tool} – ` + (running.tip.startsWith(how + " ") ? running.tip : how + (running.tip && `: ${running.tip}`))
    : `${tools} – ` + (ends || (steps.length > 1 ? `${steps.length} steps done` : "done"));
}

// open loads the steps of a reply, the first time that somebody opens them.
async function open(box) {
  if (!box.open || !box.dataset.reply || box.dataset.loaded !== undefined) return;
  box.dataset.loaded = "";
  const list = box.querySelector("ul");
  if (!list.children.length) list.append(make("li", { className: "quiet" }, "Loading…"));
  try {
    const { attest, legend } = await import("./receipts.js");
    const { steps } = await call("GET", `/c/${talk}/steps?reply=${encodeURIComponent(box.dataset.reply)}`);
    const seen = new Set([...list.querySelectorAll("li:has(> [open])")].map((l) => l.dataset.call));
    const rows = steps.map((s) => {
      if (s.html) return words(s.html);
      const li = row();
      show(li, s);
      attest(li, s);
      li.firstChild.open = seen.has(s.requestId);
      return li;
    });
    box.querySelector(".legend")?.remove();
    box.append(...legend(steps));
    list.replaceChildren(...(rows.length ? rows : [make("li", { className: "quiet" }, "These steps are not kept any more.")]));
  } catch (e) {
    delete box.dataset.loaded; // it can be opened again
    if (list.querySelector(".quiet")) list.replaceChildren(make("li", { className: "quiet" }, e.status ? e.message : "The steps could not be loaded. Open them again to retry."));
  }
}

export function start(where) {
  where.addEventListener("toggle", ({ target }) => target.matches(".steps") && open(target), true);
}
