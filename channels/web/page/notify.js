// Notifications: what is said while nobody looks. They are asked for in the page's menu, for this browser. Where the
// browser has a push service they come also when no page is open; else while a tab is open in the background.

import { $, call, make, person, stayConnected, talk } from "./wire.js";

const wish = `notify/${person}`; // in localStorage: {private}
const wanted = () => JSON.parse(localStorage.getItem(wish) ?? "null");
const able = "Notification" in window && "serviceWorker" in navigator && isSecureContext;

let pushed = false; // the gateway reaches this browser

// connect has the gateway reach this browser, or stop doing so. It returns whether it does.
async function connect(private_) {
  const worker = await navigator.serviceWorker.ready;
  if (!worker.pushManager) return false;
  const { key } = await call("GET", "/push").catch((e) => (e.status === 404 ? {} : Promise.reject(e)));
  if (!key) return false;
  const bytes = Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  let old = await worker.pushManager.getSubscription();
  if (old && !same(old.options.applicationServerKey, bytes)) old = void (await old.unsubscribe()); // of another gateway
  try {
    old ??= await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes });
  } catch {
    return false; // this browser has no push service, or it is out of reach
  }
  await call("PUT", "/push", { subscription: old.toJSON(), private: private_ });
  return true;
}

const same = (buffer, bytes) => buffer && new Uint8Array(buffer).every((b, i) => b === bytes[i]);

// forget ends the notifications of this browser, such as when somebody signs out.
export async function forget() {
  localStorage.removeItem(wish);
  pushed = false;
  stayConnected(false);
  const worker = await navigator.serviceWorker?.getRegistration("/");
  const old = await worker?.pushManager?.getSubscription();
  if (!old) return;
  await call("DELETE", "/push", { endpoint: old.endpoint }).catch(() => {}); // the push service says that it is gone
  await old.unsubscribe();
}

async function begin(private_) {
  if ((await Notification.requestPermission()) !== "granted") throw new Error(denied);
  pushed = await connect(private_);
  localStorage.setItem(wish, JSON.stringify({ private: private_ }));
  stayConnected(!pushed);
}

const denied = "Your browser blocks notifications of this page. Allow them in its settings for this site, then try again.";

// note shows an entry of this conversation if nobody looks and no push brings it.
export async function note(e, title) {
  const how = wanted();
  if (!how || pushed || document.visibilityState === "visible" || e.who !== "parley" || e.edits) return;
  const words = e.text.replace(/[*_`#>|\[\]]+/g, "").replace(/\s+/g, " ").trim().slice(0, 180);
  const show = how.private ? { title: "Parley", text: e.ask ? "Your answer is needed" : "New answer" } : { title, text: (e.ask ? "❓ " : "") + (words || "New answer") };
  const worker = await navigator.serviceWorker.ready;
  worker.showNotification(show.title, { body: show.text, tag: e.id, data: { url: `/c/${talk}` }, icon: "/app/icon-192.png", badge: "/app/badge-96.png" });
}

// --- the dialog

const why = () => {
  if (able) return Notification.permission === "denied" ? denied : "";
  if (!isSecureContext) return "Notifications need an https address, or localhost. This page has neither.";
  if (/iPhone|iPad/.test(navigator.userAgent)) return "On an iPhone or iPad, first add this page to the home screen: Share, then “Add to Home Screen”.";
  return "This browser has no notifications.";
};

let dialog;

export function open() {
  dialog ??= build();
  paint();
  $("side").matches(":popover-open") && $("side").hidePopover();
  dialog.showModal();
}

function build() {
  const box = (id, text, note) => {
    const input = make("input", { type: "checkbox", id });
    return make("label", { className: "switch" }, make("span", {}, text, make("small", {}, note)), input);
  };
  const d = make("dialog", { id: "notify" });
  d.setAttribute("aria-labelledby", "notify-title");
  d.append(make("h2", { id: "notify-title" }, "Notifications"),
    make("p", {}, "Answers and questions, while you do not look at this page."),
    box("notify-on", "In this browser", ""),
    box("notify-private", "Without the text", "They only say that there is something new."),
    make("p", { id: "notify-said", role: "status" }),
    make("div", { className: "bar" }, make("button", { type: "button", onclick: () => d.close() }, "Done")));
  document.body.append(d);
  $("notify-on").onchange = ({ target }) => { turn(() => (target.checked ? begin($("notify-private").checked) : forget())); };
  $("notify-private").onchange = ({ target }) => {
    if (wanted()) turn(() => begin(target.checked));
  };
  return d;
}

// turn does what was asked for, and says how it came out.
async function turn(act) {
  $("notify-said").textContent = "One moment…";
  $("notify-on").disabled = true;
  let problem = "";
  try {
    await act();
  } catch (e) {
    problem = e.status || e.message === denied ? e.message : "That did not work. Please try again.";
  }
  paint(problem);
}

function paint(problem = "") {
  const on = Boolean(wanted()) && able && Notification.permission === "granted", how = wanted();
  Object.assign($("notify-on"), { checked: on, disabled: Boolean(why()) && !on });
  $("notify-private").checked = Boolean(how?.private);
  $("notify-said").className = problem || why() ? "bad" : "";
  $("notify-said").textContent = problem || why() || (on ? (pushed ? "They come also when this page is closed." : "They come while this page is open in a tab: this browser has no push service, or cannot reach it.") : "");
}

// start goes on with what was asked for at an earlier visit.
export async function start() {
  const how = wanted();
  if (!how || !able || Notification.permission !== "granted") return;
  pushed = await connect(how.private).catch(() => true); // until the next visit it is as it was
  stayConnected(!pushed);
  document.addEventListener("visibilitychange", tidy);
  tidy();
}

// tidy takes back the notifications of what is in sight.
async function tidy() {
  if (document.visibilityState !== "visible") return;
  const worker = await navigator.serviceWorker.ready;
  for (const n of await worker.getNotifications()) if (n.data?.url === `/c/${talk}`) n.close();
}
