// Requests to the gateway and events from it. No address is taken from storage,
// from a message or from the address bar (R-S1).

const { talk, last, maxFile, person } = document.body.dataset;
export { talk, person };
export const most = Number(maxFile);

export const $ = (id) => document.getElementById(id);

// make creates an element. Its children are text or elements, never markup. A handler is added as a listener: what it
// returns means nothing.
export function make(tag, set = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(set)) typeof v === "function" ? e.addEventListener(k.slice(2), v) : k in e ? (e[k] = v) : e.setAttribute(k, v);
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

const modules = {}; // that were needed, by name

// need loads a module that is not needed at first.
export const need = (name) => (modules[name] ??= retry(() => import(name)).catch((e) => {
  delete modules[name];
  throw e;
}));

// style loads a style sheet of what is not needed at first.
export const style = (name) => retry(() => element("link", { rel: "stylesheet", href: new URL(name, import.meta.url).href }));

// script loads a script that is no module.
export const script = (name) => retry(() => element("script", { src: new URL(name, import.meta.url).href }));

// element adds an element to the head of the page, and removes it again if what it names cannot be loaded.
const element = (tag, set) => new Promise((onload, fail) => {
  const onerror = () => (e.remove(), fail(new TypeError(`${set.href ?? set.src} was not loaded`)));
  const e = make(tag, { ...set, onload, onerror });
  document.head.append(e);
});

const mostTries = 8; // of what does not come although there is a connection

// retry calls load until what it loads is there: the connection may break just then. A TypeError is
// what import fails with if it cannot fetch.
async function retry(load) {
  for (let all = 0, tries = 0; ; all++) {
    try {
      return await load();
    } catch (e) {
      const isConnected = navigator.onLine && source?.readyState === EventSource.OPEN;
      if (!(e instanceof TypeError) || (isConnected && ++tries > mostTries)) throw e;
      await connected(pause(all));
    }
  }
}

// connected waits for so many milliseconds, or until there is a connection again.
const connected = (ms) => new Promise((done) => {
  const go = () => {
    clearTimeout(timer);
    waiting.delete(go);
    done();
  };
  const timer = setTimeout(go, ms);
  waiting.add(go);
});

// newID returns an ID for a request that may be repeated but takes effect once (P3).
export const newID = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

export const fileURL = (f) => `/files/${encodeURIComponent(f.id)}/${encodeURIComponent(f.name)}`;

// A Refused is the error of a request that must not be retried. Fields says what is wrong
// with each field of a form.
export class Refused extends Error {
  constructor(status, text, fields) {
    super(text || "Something went wrong.");
    Object.assign(this, { status, fields });
  }
}

// refusal returns the error for a response.
export function refusal(status, text) {
  signedOut ||= status === 401;
  other ||= status === 412;
  if (status >= 500 && status !== 507 || [0, 401, 408, 412, 429].includes(status)) return new Error("not now");
  let said = text, fields;
  try {
    ({ error: said, fields } = JSON.parse(text));
  } catch {} // not every response is JSON
  return new Refused(status, typeof said === "string" ? said : said?.message, fields);
}

// headers say for whom this page was made: what is written here must not be sent as somebody
// else's who has signed in since, in this tab or another one.
const headers = (type) => ({ "X-Parley": "1", "X-Parley-Person": encodeURIComponent(person), "Content-Type": type });

export async function call(method, path, body) {
  const r = await fetch(path, {
    method, headers: headers("application/json"),
    body: body && JSON.stringify(body), signal: AbortSignal.timeout(30e3), keepalive: path.endsWith("/seen"), // also when the page is left
  });
  if (!r.ok) throw refusal(r.status, await r.text());
  return r.status === 204 ? null : r.json();
}

// keep and kept store and load data of this person in this conversation until the tab is closed.
export function keep(what, v) {
  try {
    const k = `${what}/${person}/${talk}`;
    v ? sessionStorage.setItem(k, JSON.stringify(v)) : sessionStorage.removeItem(k);
  } catch {} // without space it lasts as long as the page
}
export function kept(what) {
  try {
    return JSON.parse(sessionStorage.getItem(`${what}/${person}/${talk}`));
  } catch {
    return null;
  }
}

// --- events

let source, handlers, timer, tries = 0, seen = Number(last), down = Date.now(), signedOut = false, other = false, gone = false;

let stay = false;

// waiting are called when there is a connection again.
const waiting = new Set();

// stayConnected says that events are needed also while nobody looks.
export const stayConnected = (on) => (stay = on);

// listen calls handlers[name] for each event after the last one seen, and
// handlers.unsent when the state of an unsent item changes. An item with wrong values is
// dropped and passed to handlers.wrong, with what is wrong with each.
export function listen(h) {
  handlers = h;
  connect();
  showState();
  sendAll();
  addEventListener("online", connect);
  addEventListener("offline", showState);
  let away;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(away);
    if (document.hidden && !stay) away = setTimeout(() => source.close(), 5 * 60e3); // a browser has few connections
    else if (source.readyState !== EventSource.OPEN) connect();
  });
}

function connect() {
  clearTimeout(timer);
  source?.close();
  if (gone) return;
  const s = (source = new EventSource(`/c/${talk}/events?after=${seen}&person=${encodeURIComponent(person)}`));
  s.onopen = () => {
    tries = down = 0;
    signedOut = other = false;
    showState();
    wake();
    waiting.forEach((go) => go());
    handlers.talks(); // the list may have changed while there was no connection
  };
  s.onerror = () => {
    if (s.readyState === EventSource.CLOSED) explain();
    s.close();
    if (s !== source) return;
    down ||= Date.now();
    timer = setTimeout(connect, pause(tries++));
    showState();
  };
  s.addEventListener("resync", connect);
  for (const name of ["message", "draft", "step", "busy", "talks"]) {
    s.addEventListener(name, (e) => {
      handlers[name](JSON.parse(e.data));
      if (name === "message") seen = Number(e.lastEventId);
    });
  }
}

// hangUp ends the event stream for good, or starts it again.
export function hangUp(on) {
  gone = on;
  on ? source.close() : connect();
}

const pause = (tries) => Math.min(15e3, 500 * 2 ** tries) * (0.75 + Math.random() / 2);

// explain finds out why there is no event stream, which EventSource does not tell.
async function explain() {
  try {
    await call("GET", `/c/${talk}/before?seq=1`);
  } catch (e) {
    gone = e.status === 404;
  }
  showState();
}

// showState shows the state of the connection.
function showState() {
  const since = down && Date.now() - down;
  let text = "", link;
  if (gone) [text, link] = ["This conversation was deleted. ", make("a", { href: "/" }, "Show other conversations")];
  else if (other) [text, link] = ["Somebody else has signed in here since. What you write in this tab is not sent. ", make("a", { href: "/" }, "Show their conversations")];
  else if (signedOut) [text, link] = ["You are signed out. Your messages will be sent once you sign in. ", make("a", { href: "/signin" }, "Sign in")];
  else if (!navigator.onLine) text = "You are offline. Your messages will be sent when you are back online.";
  else if (since > 5000) text = "Parley is not responding. Your messages will be sent when it is back.";
  else if (since > 1500) text = "Connecting…";
  else if (down) setTimeout(showState, 1600 - since);
  const state = $("state");
  if (state.dataset.text === text) return;
  state.dataset.text = text;
  state.replaceChildren(text, link ?? "");
}

// --- requests

// unsent are the items that were not accepted yet, in order. An item has an id, and
// either text and files or a question, a choice and the values of a form. Late means that a try failed;
// failed says why another try would not help.
export const unsent = kept("unsent") ?? [];
let sending = false, wake = () => {};

function changed() {
  keep("unsent", unsent.length && unsent);
  handlers.unsent();
}

// post sends item, with retries, until it is accepted. An item that failed is tried
// again.
export function post(item) {
  delete item.failed;
  if (!unsent.includes(item)) unsent.push(item);
  changed();
  sending ? wake() : sendAll();
}

export function drop(item) {
  unsent.splice(unsent.indexOf(item), 1);
  changed();
}

async function sendAll() {
  sending = true;
  for (let item, tries = 0; (item = unsent.find((i) => !i.failed)); ) {
    const { id, text, files, question, choice, values } = item;
    try {
      if (question) await call("POST", `/c/${talk}/answer`, { id, question, choice, values });
      else check(await call("POST", `/c/${talk}/messages`, { id, text, files: files.map((f) => f.id) }));
      tries = 0;
      drop(item);
    } catch (e) {
      if (e.fields) {
        drop(item);
        handlers.wrong(item, e.fields);
        continue;
      }
      const again = !(e instanceof Refused);
      again ? (item.late = true) : (item.failed = e.message);
      changed();
      showState();
      if (again) await new Promise((done) => setTimeout((wake = done), pause(tries++)));
    }
  }
  sending = false;
}

// check reconnects if an accepted message does not come back as an event: a stream can
// be dead without an error.
function check({ seq }) {
  setTimeout(() => seen < seq && connect(), 5000);
}

// command sends a command that is not shown in the conversation. It is not retried:
// a stop that arrives an hour late would stop something else.
export const command = (text) => call("POST", `/c/${talk}/messages`, { id: newID(), text, files: [], quiet: true });

const uploadPatience = 60e3; // ms without any progress

// upload sends the file f, which may be a voice message, and calls progress with the fraction sent, from 0 to 1.
export function upload(f, voice, progress) {
  const x = new XMLHttpRequest();
  let stalled;
  const alive = () => {
    clearTimeout(stalled);
    stalled = setTimeout(() => {
      x.onabort = x.onerror;
      x.abort();
    }, uploadPatience);
  };
  const done = new Promise((take, fail) => {
    x.open("PUT", "/files?name=" + encodeURIComponent(f.name || "file") + (voice ? "&voice" : ""));
    for (const [k, v] of Object.entries(headers("application/octet-stream"))) x.setRequestHeader(k, v);
    x.upload.onprogress = (e) => {
      alive();
      if (e.lengthComputable) progress(e.loaded / e.total);
    };
    x.onload = () => { x.status < 300 ? take(JSON.parse(x.responseText)) : fail(refusal(x.status, x.responseText)); };
    x.onerror = () => { fail(new Error("not now")); };
    x.onabort = () => { fail(new Refused(0, "removed")); };
    x.onloadend = () => { clearTimeout(stalled); };
    alive();
    x.send(f);
  });
  return { done, abort: () => x.abort() };
}
