// Menus: what the message box proposes after a slash, the models to choose from, and what can be done with the
// conversation.

import { $, call, icon, make, newID, post, talk } from "./wire.js";
import { follow } from "./view.js";

const text = $("text"), form = $("write");
let menus; // what can be proposed; loaded when it is first needed

const load = () => (menus ??= call("GET", `/c/${talk}/menus`).catch(() => (menus = undefined)));

// --- proposals above the message box: items {name, help, choose}

const list = make("ul", { id: "proposals", role: "listbox", ariaLabel: "Proposals", hidden: true });
let items = [], at = 0, ofModels = false;

function show(found) {
  items = found;
  at = Math.max(0, items.findIndex((item) => item.current));
  list.hidden = !items.length;
  list.replaceChildren(...items.map((item, i) =>
    make("li", { id: "proposal-" + i, role: "option", onclick: () => pick(i), onpointerdown: (e) => e.preventDefault() },
      make("b", {}, item.name), " ", make("span", {}, ...(item.current ? [icon("done"), " in use"] : [item.help])))));
  move(0);
}

function hide() {
  ofModels = false;
  show([]);
}

// move chooses the item after so many others, around the ends.
function move(by) {
  at = items.length ? (at + by + items.length) % items.length : 0;
  [...list.children].forEach((li, i) => (li.ariaSelected = String(i === at)));
  items.length ? text.setAttribute("aria-activedescendant", "proposal-" + at) : text.removeAttribute("aria-activedescendant");
  const li = list.children[at];
  if (!li) return;
  if (li.offsetTop < list.scrollTop) list.scrollTop = li.offsetTop;
  if (li.offsetTop + li.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = li.offsetTop + li.offsetHeight - list.clientHeight;
}

function pick(i) {
  const { choose } = items[i];
  hide();
  choose();
  text.focus();
}

// put makes words what is written, as if they were typed.
function put(words) {
  text.value = words;
  text.dispatchEvent(new Event("input"));
}

// toModels returns the proposals of models, of which one may be in use.
const toModels = (found, begin) => found.models.filter((m) => m.startsWith(begin)).map((name) => ({
  name, help: "", current: name === found.model,
  choose() {
    if (text.value.startsWith("/model")) put("");
    else if (name === found.model) return;
    found.model = name;
    post({ id: newID(), text: "/model " + name, files: [], time: Date.now() });
    follow();
  },
}));

// propose shows what fits to what is written.
async function propose() {
  const words = text.value, [, command, model] = /^\/([\w-]*)(?: ([^\s]*))?$/.exec(words) ?? [];
  if (command === undefined) return hide();
  const found = await load();
  if (!found || text.value !== words) return;
  ofModels = false;
  if (model !== undefined) return show(command === "model" ? toModels(found, model) : []);
  const begin = found.commands.filter((c) => c.name.startsWith(command));
  const within = found.commands.filter((c) => command && !c.name.startsWith(command) && (c.name + " " + c.help.toLowerCase()).includes(command));
  show([...begin, ...within].map(({ name, help }) => ({ name: "/" + name, help, choose: () => put(`/${name} `) })));
}

async function showModels() {
  if (ofModels && !list.hidden) return hide();
  const before = menus;
  menus = undefined; // another one may have been chosen elsewhere
  const found = (await load()) ?? (await (menus = before));
  if (!found) return;
  ofModels = true;
  show(toModels(found, ""));
  text.focus();
}

function key(e) {
  if (list.hidden || e.isComposing) return;
  const whole = at === 0 && items[0].name === text.value.trim(); // it can be sent as it is
  if (e.key === "ArrowDown") move(1);
  else if (e.key === "ArrowUp") move(-1);
  else if (e.key === "Escape") hide();
  else if (e.key === "Tab" && !e.shiftKey || e.key === "Enter" && !e.shiftKey && !whole) pick(at);
  else return;
  e.preventDefault();
  e.stopPropagation();
}

// --- the conversation

export function pinMark(t) {
  return t.pinned ? [make("span", { className: "pinned", title: "Pinned" }, icon("pin"), make("span", { className: "unseen" }, "Pinned: "))] : [];
}

async function pin() {
  const button = $("pin");
  try {
    const { pinned } = await call("POST", `/c/${talk}/pin`, { pinned: button.dataset.pinned !== "true" });
    button.dataset.pinned = pinned;
    button.lastChild.textContent = pinned ? "Unpin" : "Pin to the top";
    $("choices").hidePopover();
  } catch {} // it can be pressed again
}

export function start() {
  form.append(list);
  text.setAttribute("aria-controls", "proposals");
  text.setAttribute("aria-autocomplete", "list");
  text.addEventListener("input", propose);
  text.addEventListener("blur", () => ofModels || hide());
  form.addEventListener("keydown", key, true); // before the message box sends
  document.addEventListener("pointerdown", (e) => e.target.closest("#proposals, #model") || hide());
  if ($("model")) $("model").onclick = showModels;
  $("pin").onclick = pin;
  $("choices").addEventListener("click", (e) => e.target.closest("a") && $("choices").hidePopover());
}
