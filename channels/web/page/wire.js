// What goes to the house and what comes from it. No address is taken from
// storage, from a message or from the address bar (R-S1).

const { talk, last, maxFile } = document.body.dataset;
export { talk };
export const most = Number(maxFile);

export const $ = (id) => document.getElementById(id);

// make makes an element; its children are text or elements, never markup.
export function make(tag, set = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(set)) k in e ? (e[k] = v) : e.setAttribute(k, v);
  e.append(...children);
  return e;
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS(svg.namespaceURI, "use");
  use.setAttribute("href", "#i-" + name);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

// newID names something that is done once, however often it is asked for (P3).
export const newID = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

export const fileURL = (f) => `/files/${encodeURIComponent(f.id)}/${encodeURIComponent(f.name)}`;

// A Refused is a request that another try does not help.
export class Refused extends Error {
  constructor(status, text) {
    super(text || "That did not work.");
    this.status = status;
  }
}

// refusal is the error that an answer means.
export function refusal(status, text) {
  signedOut ||= status === 401;
  if (status >= 500 && status !== 507 || [0, 401, 408, 429].includes(status)) return new Error("not now");
  let said = text;
  try {
    said = JSON.parse(text).error;
  } catch {} // not every refusal is JSON
  return new Refused(status, typeof said === "string" ? said : said?.message);
}

export async function call(method, path, body) {
  const r = await fetch(path, {
    method, headers: { "X-Parley": "1", "Content-Type": "application/json" },
    body: body && JSON.stringify(body), signal: AbortSignal.timeout(30e3),
  });
  if (!r.ok) throw refusal(r.status, await r.text());
  return r.status === 204 ? null : r.json();
}

// keep and kept remember something of this conversation until the tab is closed.
export function keep(what, v) {
  try {
    const k = `${what}/${talk}`;
    v ? sessionStorage.setItem(k, JSON.stringify(v)) : sessionStorage.removeItem(k);
  } catch {} // there is no space: it lives as long as the page does
}
export function kept(what) {
  try {
    return JSON.parse(sessionStorage.getItem(`${what}/${talk}`));
  } catch {
    return null;
  }
}

// --- what comes

let source, hears, timer, tries = 0, seen = Number(last), down = Date.now(), signedOut = false, gone = false;

// listen calls hear[name] with each event from the last one seen on, and
// hear.unsent when something else became of what was written.
export function listen(hear) {
  hears = hear;
  connect();
  tell();
  run();
  addEventListener("online", connect);
  addEventListener("offline", tell);
  let away;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(away);
    if (document.hidden) away = setTimeout(() => source.close(), 5 * 60e3); // a browser has few connections
    else if (source.readyState !== EventSource.OPEN) connect();
  });
}

function connect() {
  clearTimeout(timer);
  source?.close();
  if (gone) return;
  const s = (source = new EventSource(`/c/${talk}/events?after=${seen}`));
  s.onopen = () => {
    tries = down = 0;
    signedOut = false;
    tell();
    wake();
    hears.talks(); // the list may have changed while nobody listened
  };
  s.onerror = () => {
    if (s.readyState === EventSource.CLOSED) explain();
    s.close();
    if (s !== source) return;
    down ||= Date.now();
    timer = setTimeout(connect, pause(tries++));
    tell();
  };
  s.addEventListener("resync", connect);
  for (const name of ["message", "draft", "step", "busy", "talks"]) {
    s.addEventListener(name, (e) => {
      hears[name](JSON.parse(e.data));
      if (name === "message") seen = Number(e.lastEventId);
    });
  }
}

// hangUp ends the stream for good, or begins it again.
export function hangUp(on) {
  gone = on;
  on ? source.close() : connect();
}

const pause = (tries) => Math.min(15e3, 500 * 2 ** tries) * (0.75 + Math.random() / 2);

// explain finds out why there is no stream: it does not say so itself.
async function explain() {
  try {
    await call("GET", `/c/${talk}/before?seq=1`);
  } catch (e) {
    gone = e.status === 404;
  }
  tell();
}

// tell shows how the connection is.
function tell() {
  const since = down && Date.now() - down;
  let text = "", link;
  if (gone) [text, link] = ["This conversation was deleted. ", make("a", { href: "/" }, "See the others")];
  else if (signedOut) [text, link] = ["What you write is kept until you are back. ", make("a", { href: "/signin" }, "Sign in")];
  else if (!navigator.onLine) text = "You are offline. What you write is sent when you are back.";
  else if (since > 5000) text = "Parley does not answer. What you write is sent when it does.";
  else if (since > 1500) text = "Connecting…";
  else if (down) setTimeout(tell, 1600 - since);
  const state = $("state");
  if (state.dataset.text === text) return;
  state.dataset.text = text;
  state.replaceChildren(text, link ?? "");
}

// --- what goes

// What was not taken yet, in the order in which it was written. An item has an
// id, and text and files, or a question and a choice; late says that it was
// tried in vain, failed why there is no use in trying again.
export const unsent = kept("unsent") ?? [];
let running = false, wake = () => {};

function changed() {
  keep("unsent", unsent.length && unsent);
  hears.unsent();
}

// post sends item until it is taken. The same item again is tried again.
export function post(item) {
  delete item.failed;
  if (!unsent.includes(item)) unsent.push(item);
  changed();
  running ? wake() : run();
}

export function drop(item) {
  unsent.splice(unsent.indexOf(item), 1);
  changed();
}

async function run() {
  running = true;
  for (let item, tries = 0; (item = unsent.find((i) => !i.failed)); ) {
    const { id, text, files, question, choice } = item;
    try {
      if (question) await call("POST", `/c/${talk}/answer`, { id, question, choice });
      else check(await call("POST", `/c/${talk}/messages`, { id, text, files: files.map((f) => f.id) }));
      tries = 0;
      drop(item);
    } catch (e) {
      const again = !(e instanceof Refused);
      again ? (item.late = true) : (item.failed = e.message);
      changed();
      tell();
      if (again) await new Promise((done) => setTimeout((wake = done), pause(tries++)));
    }
  }
  running = false;
}

// check finds out whether what was taken comes back: a stream can be dead and not know it.
function check({ seq }) {
  setTimeout(() => seen < seq && connect(), 5000);
}

// command tells the house what is not part of the conversation. It is not kept:
// a stop that comes an hour late would stop something else.
export const command = (text) => call("POST", `/c/${talk}/messages`, { id: newID(), text, files: [], quiet: true });

// upload sends f; progress is told of the part that is there, from 0 to 1.
export function upload(f, progress) {
  const x = new XMLHttpRequest();
  const done = new Promise((take, fail) => {
    x.open("PUT", "/files?name=" + encodeURIComponent(f.name || "file"));
    x.setRequestHeader("X-Parley", "1");
    x.setRequestHeader("Content-Type", "application/octet-stream");
    x.upload.onprogress = (e) => e.lengthComputable && progress(e.loaded / e.total);
    x.onload = () => (x.status < 300 ? take(JSON.parse(x.responseText)) : fail(refusal(x.status, x.responseText)));
    x.onerror = () => fail(new Error("not now"));
    x.onabort = () => fail(new Refused(0, "removed"));
    x.send(f);
  });
  return { done, abort: () => x.abort() };
}
