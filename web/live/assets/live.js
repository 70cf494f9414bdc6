// Keeps the parts of a page up to date while it is looked at: see package live.
import { isSignedOut, words } from "./signedout.js";

const page = document.querySelector("[data-live]");
const light = document.getElementById("live");
let source;

function say(state, ...parts) {
  const text = parts.map((part) => part.textContent ?? part).join("");
  if (!light || light.textContent === text) return;
  light.className = "state " + state;
  light.replaceChildren(...parts);
}

// The element that has the focus is found again by what it does, and otherwise by its place.
function mark(part) {
  const active = document.activeElement;
  if (!part.contains(active) || active === part) return () => {};
  const { post } = active.dataset;
  const all = () => [...part.querySelectorAll("a, button, summary, [tabindex]")];
  const at = all().indexOf(active);
  return () => {
    const again = all();
    const same = post ? again.find((e) => e.dataset.post === post) : again[at];
    if (!same) return;
    if (same.matches(".column")) {
      for (const e of same.parentElement.querySelectorAll(".column")) e.setAttribute("tabindex", e === same ? "0" : "-1");
    }
    same.focus({ preventScroll: true });
  };
}

function replace({ id, html }) {
  const part = document.getElementById(id);
  if (!part) return;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  if (part.innerHTML === fresh.innerHTML) return;
  const open = [...part.querySelectorAll("details")].map((e) => e.open);
  const focus = mark(part);
  part.replaceChildren(fresh.content);
  part.querySelectorAll("details").forEach((e, i) => (e.open = open[i] ?? e.open));
  focus();
  part.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
}

function follow() {
  if (source || document.hidden) return;
  source = new EventSource(page.dataset.live);
  source.addEventListener("open", () => say("good", "Live"));
  source.addEventListener("error", async ({ target }) => {
    say("warn", "No connection, trying again");
    if (target.readyState === EventSource.CLOSED) { // it was refused, as by a gateway that shuts down
      const out = await isSignedOut(page.dataset.live);
      if (target !== source) return; // nobody looks any more, or somebody looks again
      if (out) return say("bad", ...words()); // until somebody comes to look again, who may have signed in
      rest();
      setTimeout(follow, 3000);
    }
  });
  source.addEventListener("part", (event) => replace(JSON.parse(event.data)));
}

function rest() {
  source?.close();
  source = undefined;
}

// Who does not look costs nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : follow()));
addEventListener("pagehide", rest);
addEventListener("pageshow", follow);
if (page) follow();
