// The list of conversations: search, create, rename, delete.

import { $, call, hangUp, make, person, talk } from "./wire.js";
import * as menus from "./menus.js";
import * as unread from "./unread.js";

const list = $("talks"), words = $("words"), title = $("title");
let requests = 0;

// show loads the list or the search results and shows them.
export async function show() {
  const q = words.value.trim(), request = ++requests;
  let found;
  try {
    found = await call("GET", q ? "/talks?q=" + encodeURIComponent(q) : "/talks");
  } catch {
    return; // the next event loads it
  }
  if (request !== requests) return;
  const me = found.find((t) => t.id === talk);
  if (!q) elsewhere(found.find((t) => t.asks && t.id !== talk));
  if (!q) unread.count(found);
  if (!q && me) showTitle(me.title);
  if (!q && !me) found.unshift({ id: talk, title: title.textContent });
  const lines = found.map((t) => {
    const a = make("a", { href: `/c/${encodeURIComponent(t.id)}` }, ...unread.mark(t), ...menus.pinMark(t), t.title);
    if (t.id === talk) a.ariaCurrent = "page";
    if (t.snippet) a.append(make("small", {}, t.snippet));
    return make("li", {}, a);
  });
  const at = [...list.children].findIndex((li) => li.contains(document.activeElement));
  list.replaceChildren(...lines);
  if (at >= 0) list.children[at]?.firstChild.focus();
  if (q && !found.length) list.append(make("li", { className: "none" }, "Nothing found"));
  $("found").textContent = q ? `${found.length || "Nothing"} found` : "";
}

// elsewhere shows that conversation t waits for an answer, or without t that none does.
function elsewhere(t) {
  const line = $("elsewhere"), a = line.querySelector("a");
  line.hidden = !t;
  if (t) Object.assign(a, { href: `/c/${encodeURIComponent(t.id)}`, textContent: t.title });
}

function showTitle(to) {
  if (title.textContent === to) return;
  title.textContent = to;
  unread.name(to);
}

// editTitle shows or hides the field for the title.
function editTitle(on) {
  $("rename").hidden = !on;
  title.hidden = $("edit").hidden = on;
  if (on) {
    $("name").value = title.textContent;
    $("name").select();
  } else $("edit").focus();
}

async function saveTitle() {
  const to = $("name").value.trim();
  if (to && to !== title.textContent) {
    try {
      showTitle((await call("PATCH", `/c/${talk}`, { title: to })).title);
    } catch (e) {
      $("name").setCustomValidity(e.status ? e.message : "Could not rename. Please try again.");
      return $("name").reportValidity();
    }
  }
  editTitle(false);
}

async function deleteConfirmed() {
  if ($("sure").returnValue !== "yes") return;
  try {
    hangUp(true);
    await call("DELETE", `/c/${talk}`);
    location.assign("/");
  } catch {
    hangUp(false);
    $("asked").textContent = "Could not delete this conversation. Try again?";
    confirmDelete();
  }
}

function confirmDelete() {
  $("sure").returnValue = "";
  $("sure").showModal();
}

export function find() {
  const side = $("side");
  if (getComputedStyle(side).display === "none") side.showPopover();
  words.select();
}

export function start() {
  let soon;
  words.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(show, 250);
  });
  $("find").onsubmit = (e) => { e.preventDefault(); show(); };
  $("new").onclick = async () => {
    $("new").disabled = true;
    try {
      location.assign("/c/" + encodeURIComponent((await call("POST", "/c", {})).id));
    } catch {
      $("new").disabled = false; // it can be pressed again
    }
  };
  $("leave").onclick = async () => {
    try {
      if (localStorage.getItem(`notify/${person}`)) await (await import("./notify.js")).forget();
      await call("POST", "/signout", {});
      sessionStorage.clear();
      location.assign("/signin");
    } catch {} // it can be pressed again
  };
  $("edit").onclick = () => { editTitle(true); };
  $("rename").onsubmit = (e) => { e.preventDefault(); saveTitle(); };
  $("name").oninput = () => { $("name").setCustomValidity(""); };
  $("name").onkeydown = (e) => {
    if (e.key === "Escape") e.stopPropagation(), editTitle(false);
  };
  $("name").onblur = () => {
    if (!$("rename").hidden && !document.hidden) saveTitle();
  };
  $("delete").onclick = () => { confirmDelete(); };
  $("sure").onclose = deleteConfirmed;
}
