// The editor of config.json: line numbers, the verdict of the program, the differences, and saving.
const form = document.getElementById("editor");
const text = document.getElementById("text");
const numbers = document.getElementById("numbers");
const outcome = document.getElementById("outcome");
const said = document.getElementById("said");
const original = form.dataset.changed ? null : text.value;
let faulty = new Set();
let saved = false;

function number() {
  const lines = text.value.split("\n").length;
  numbers.replaceChildren();
  for (let n = 1; n <= lines; n++) {
    if (faulty.has(n)) {
      const mark = document.createElement("b");
      mark.textContent = n;
      numbers.append(mark, "\n");
    } else numbers.append(n + "\n");
  }
  numbers.scrollTop = text.scrollTop;
}

function where() {
  const before = text.value.slice(0, text.selectionStart).split("\n");
  document.getElementById("cursor").textContent = `Line ${before.length}, column ${[...before.at(-1)].length + 1}`;
}

// show moves the cursor to a line and a column, which counts characters.
function show(line, column) {
  const lines = text.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
  const offset = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  text.focus();
  text.setSelectionRange(start + offset, start + offset);
  const height = parseFloat(getComputedStyle(text).lineHeight);
  text.scrollTop = Math.max(0, (line - 4) * height);
  where();
}

async function post(path, body) {
  const headers = { "X-Parley": "1", "Content-Type": "application/json" };
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error.message ?? told.error);
  return told;
}

function say(words) {
  said.textContent = words.replace(/\.?$/, ".");
  said.scrollIntoView({ block: "nearest" });
}

function element(name, words, kind) {
  const made = document.createElement(name);
  made.textContent = words;
  if (kind) made.className = kind;
  return made;
}

function showFaults(faults) {
  faulty = new Set(faults.map((f) => f.line));
  document.getElementById("faults").replaceChildren(...faults.map((f) => {
    const item = document.createElement("li");
    const button = element("button", "");
    button.type = "button";
    if (f.line) {
      button.append(element("b", `Line ${f.line}, column ${f.column}: `));
      button.addEventListener("click", () => show(f.line, f.column));
    }
    button.append(f.text);
    item.append(button);
    return item;
  }));
  number();
}

function effects(v) {
  const all = [];
  if (v.changed.length) all.push(element("p", "Takes effect at once: " + v.changed.join(", ") + "."));
  if (v.restart.length) all.push(element("p", "Waits for the next start of Parley: " + v.restart.join(", ") + "."));
  for (const warning of v.warnings) all.push(element("p", "Warning: " + warning + ".", "warning"));
  return all;
}

function showDiff(diff) {
  const kinds = { "+": "add", "-": "cut", "@": "at" };
  const lines = diff.split("\n").slice(2, -1);
  document.getElementById("diff").replaceChildren(...lines.map((l) => element("span", l || " ", kinds[l[0]] ?? "same")));
}

async function review() {
  said.textContent = "";
  try {
    const v = await post("/api/config/check", { text: text.value });
    const broken = v.faults.length > 0;
    const same = v.diff === "";
    const title = broken
      ? (v.faults.length === 1 ? "One thing is wrong: it cannot be saved like this" : v.faults.length + " things are wrong: it cannot be saved like this")
      : same ? "Nothing has changed" : "This would change";
    document.getElementById("verdict").textContent = title;
    outcome.className = "card " + (broken ? "bad" : "good");
    showFaults(v.faults);
    document.getElementById("effects").replaceChildren(...(broken || same ? [] : effects(v)));
    showDiff(v.diff);
    document.getElementById("save").hidden = broken || same;
    outcome.hidden = false;
    outcome.focus({ preventScroll: true });
    outcome.scrollIntoView({ block: "nearest" });
    if (broken && v.faults[0].line) show(v.faults[0].line, v.faults[0].column);
  } catch (err) {
    say(err.message);
  }
}

async function save() {
  const button = document.getElementById("save");
  button.disabled = true;
  try {
    const v = await post("/api/config", { base: form.dataset.base, text: text.value });
    saved = true;
    sessionStorage.setItem("config saved", effects(v).map((p) => p.textContent).join(" "));
    location.assign("/owner/config");
  } catch (err) {
    say(err.message);
    button.disabled = false;
  }
}

text.addEventListener("input", () => {
  outcome.hidden = true;
  faulty = new Set();
  number();
});
text.addEventListener("scroll", () => { numbers.scrollTop = text.scrollTop; });
document.addEventListener("selectionchange", () => { if (document.activeElement === text) where(); });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  review();
});
document.getElementById("save").addEventListener("click", save);
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "s" && !text.readOnly) {
    event.preventDefault();
    review();
  }
});
addEventListener("beforeunload", (event) => {
  if (!saved && text.value !== (original ?? text.value)) event.preventDefault();
});
number();
const done = sessionStorage.getItem("config saved");
if (done !== null) {
  sessionStorage.removeItem("config saved");
  say("Saved. " + done);
}
if (form.dataset.changed && !text.readOnly) review();
