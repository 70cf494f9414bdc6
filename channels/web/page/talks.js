// The conversations: the list, search, a new one, another name, deleting.

import { $, call, hangUp, make, talk } from "./wire.js";

const list = $("talks"), words = $("words"), title = $("title");
let asked = 0;

// show asks for the list, or for what is found, and shows it.
export async function show() {
  const q = words.value.trim(), mine = ++asked;
  let found;
  try {
    found = await call("GET", q ? "/talks?q=" + encodeURIComponent(q) : "/talks");
  } catch {
    return; // the next news brings it
  }
  if (mine !== asked) return;
  const me = found.find((t) => t.id === talk);
  if (!q) elsewhere(found.find((t) => t.asks && t.id !== talk));
  if (!q && me) rename(me.title);
  if (!q && !me) found.unshift({ id: talk, title: title.textContent });
  const lines = found.map((t) => {
    const a = make("a", { href: `/c/${encodeURIComponent(t.id)}` });
    if (t.asks) a.append(make("span", { className: "badge", title: "Waiting for your answer" }, String(t.asks), make("span", { className: "unseen" }, " waiting for your answer: ")));
    a.append(t.title);
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

// elsewhere says that the conversation t waits for an answer, or with nothing that none does.
function elsewhere(t) {
  const line = $("elsewhere"), a = line.querySelector("a");
  if (t && line.hidden && document.hidden && !document.title.startsWith("● ")) document.title = "● " + document.title;
  line.hidden = !t;
  if (t) Object.assign(a, { href: `/c/${encodeURIComponent(t.id)}`, textContent: t.title });
}

function rename(to) {
  if (title.textContent === to) return;
  title.textContent = to;
  document.title = `${to} – Parley`;
}

// naming shows the field for another name, or not any more.
function naming(on) {
  $("rename").hidden = !on;
  title.hidden = $("edit").hidden = on;
  if (on) {
    $("name").value = title.textContent;
    $("name").select();
  } else $("edit").focus();
}

async function named() {
  const to = $("name").value.trim();
  if (to && to !== title.textContent) {
    try {
      rename((await call("PATCH", `/c/${talk}`, { title: to })).title);
    } catch (e) {
      $("name").setCustomValidity(e.status ? e.message : "That did not get through. Please try again.");
      return $("name").reportValidity();
    }
  }
  naming(false);
}

async function gone() {
  if ($("sure").returnValue !== "yes") return;
  try {
    hangUp(true);
    await call("DELETE", `/c/${talk}`);
    location.assign("/");
  } catch {
    hangUp(false);
    $("asked").textContent = "That did not get through. Try again?";
    sure();
  }
}

function sure() {
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
  $("find").onsubmit = (e) => (e.preventDefault(), show());
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
      await call("POST", "/signout", {});
      sessionStorage.clear();
      location.assign("/signin");
    } catch {} // it can be pressed again
  };
  $("edit").onclick = () => naming(true);
  $("rename").onsubmit = (e) => (e.preventDefault(), named());
  $("name").oninput = () => $("name").setCustomValidity("");
  $("name").onkeydown = (e) => e.key === "Escape" && (e.stopPropagation(), naming(false));
  $("name").onblur = () => $("rename").hidden || document.hidden || named();
  $("delete").onclick = () => sure();
  $("sure").onclose = gone;
}
