// Adds lines of the log as they come, and rests while paused or not looked at.
import { isSignedOut, words } from "./signedout.js";

const list = document.getElementById("lines");
const nothing = document.getElementById("nothing");
const button = document.getElementById("pause");
const tail = document.getElementById("tail");
const most = 500;
let last = list.dataset.last;
let paused = false;
let source;

function say(state, ...parts) {
  if (tail.textContent === parts.map((part) => part.textContent ?? part).join("")) return;
  tail.className = "state " + state;
  tail.replaceChildren(...parts);
}

function add({ n, html }) {
  last = n;
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  fresh.content.firstChild.className = "fresh";
  list.prepend(fresh.content);
  nothing.hidden = true;
  while (list.children.length > most) list.lastElementChild.remove();
}

function follow() {
  if (source || paused || document.hidden) return;
  const url = `${list.dataset.events}?${list.dataset.query}&after=${last}`;
  source = new EventSource(url);
  source.addEventListener("open", () => say("good", "Live"));
  source.addEventListener("line", (event) => add(JSON.parse(event.data)));
  source.addEventListener("error", async ({ target }) => {
    say("warn", "No connection, trying again");
    if (target.readyState === EventSource.CLOSED) {
      const out = await isSignedOut(url);
      if (target !== source) return; // it was paused, or somebody looks again
      if (out) return say("bad", ...words()); // until somebody comes to look again, who may have signed in
    }
    rest(); // the next one begins after the last line that came
    setTimeout(follow, 2000);
  });
}

function rest() {
  source?.close();
  source = undefined;
}

button.addEventListener("click", () => {
  paused = !paused;
  button.textContent = paused ? "Go on" : "Pause";
  if (!paused) return follow();
  rest();
  say("idle", "Paused");
});

document.addEventListener("visibilitychange", () => (document.hidden ? rest() : follow()));
addEventListener("pagehide", rest);
addEventListener("pageshow", follow);
follow();
