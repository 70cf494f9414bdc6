// Sends the requests that buttons and forms of the owner's pages describe in data attributes.
const said = document.getElementById("said");

async function act(method, path, body) {
  const headers = { "X-Parley": "1" };
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body });
  if (answer.status === 204) return null;
  const told = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(told.error.message ?? told.error), { status: answer.status });
  return told;
}

// say tells what was done, on a page that keeps itself up to date.
function say(words) {
  said.textContent = words;
  said.scrollIntoView({ block: "nearest" });
}

// tell shows a link or a key, which is shown only once.
function tell(told) {
  const box = document.createElement("output");
  box.textContent = told.link ?? told.secret;
  said.replaceChildren(told.link ? "This link signs in once: " : "This key is shown only now: ", box);
  said.tabIndex = -1;
  said.focus();
}

// show puts what was told into the elements of a section that name its fields: texts, links and what forms send on.
function show(id, told) {
  const section = document.getElementById(id);
  for (const out of section.querySelectorAll("[data-out]")) {
    const value = told[out.dataset.out] ?? "";
    const text = typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
    if (out.localName === "input") out.value = text;
    else out.textContent = text;
    if (out.localName === "a") out.href = text;
    out.parentElement.hidden = text === "";
  }
  section.hidden = false;
  section.scrollIntoView({ block: "nearest" });
}

// reloadSaying loads the page anew, which then says what was done, and is still where it was scrolled to.
function reloadSaying(words) {
  try {
    sessionStorage.setItem("done", JSON.stringify({ page: location.pathname + location.search, words, y: scrollY }));
    history.scrollRestoration = "manual";
  } catch {} // the browser keeps nothing
  location.reload();
}

// sayAfterReload is the other half of reloadSaying.
function sayAfterReload() {
  let done;
  try {
    done = JSON.parse(sessionStorage.getItem("done"));
    sessionStorage.removeItem("done");
  } catch {}
  if (done?.page !== location.pathname + location.search) return;
  const height = document.documentElement.scrollHeight;
  said.textContent = done.words;
  // What is said stands above what was looked at, and moves it down.
  if (done.y > 0) scrollTo({ top: done.y + document.documentElement.scrollHeight - height, behavior: "instant" });
  addEventListener("load", () => setTimeout(() => (history.scrollRestoration = "auto"))); // until then it would move
}
sayAfterReload();

async function go(element, method, path, body) {
  if (element.dataset.sure && !confirm(element.dataset.sure)) return;
  said.textContent = "";
  try {
    const told = await act(method, path, body);
    if (told?.link ?? told?.secret) tell(told);
    else if (told?.said) say(told.said);
    else if (element.dataset.show) show(element.dataset.show, told.data);
    else if (element.dataset.then ?? told?.then) location.assign(element.dataset.then ?? told.then);
    else reloadSaying(element.dataset.done ?? "Done.");
  } catch (err) {
    if (err.status === 409) for (const button of element.querySelectorAll("[data-conflict]")) button.hidden = false;
    said.textContent = err.message.replace(/\.?$/, ".");
    said.scrollIntoView({ block: "nearest" });
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-post], button[data-patch], button[data-delete]");
  if (!button) return;
  const { post, patch, body } = button.dataset;
  if (post) go(button, "POST", post, body);
  else if (patch) go(button, "PATCH", patch, body);
  else go(button, "DELETE", button.dataset.delete);
});

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-post]");
  if (!form) return;
  event.preventDefault();
  const fields = Object.fromEntries(new FormData(form, event.submitter));
  const other = document.getElementById(form.dataset.with);
  if (other) Object.assign(fields, Object.fromEntries(new FormData(other)));
  go(form, "POST", form.dataset.post, JSON.stringify(fields));
});

// On a narrow window the rows of a table of more than two columns become blocks, in which each cell is named by
// its column. What that does to the style must not take away what screen readers know of the table.
function stack(table) {
  const columns = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  if (columns.length <= 2) return;
  table.classList.add("stacks");
  table.setAttribute("role", "table");
  for (const row of table.rows) {
    row.setAttribute("role", "row");
    for (const cell of row.cells) {
      cell.setAttribute("role", { col: "columnheader", row: "rowheader" }[cell.scope] ?? "cell");
      if (row.parentElement !== table.tHead && cell.cellIndex > 0) cell.dataset.column = columns[cell.cellIndex];
    }
  }
}
const stackAll = (part) => part.querySelectorAll(".wide > table:not(.stacks)").forEach(stack);
stackAll(document);
document.addEventListener("replaced", (event) => stackAll(event.target)); // by live.js
