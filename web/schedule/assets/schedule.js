// Shows when a job would run while the words are typed, and sends the forms of jobs.
const said = document.getElementById("said");

async function ask(method, path, fields) {
  const headers = { "X-Parley": "1" };
  if (fields) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body: fields && JSON.stringify(fields) });
  const told = answer.status === 204 ? null : await answer.json();
  if (!answer.ok) throw new Error(told.error.message ?? told.error);
  return told;
}

function complain(err) {
  said.textContent = err.message.replace(/\.?$/, ".");
  said.scrollIntoView({ block: "nearest" });
}

// line returns an element with a text.
function line(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

let latest = 0; // the preview that was asked for last

async function preview(form) {
  const { when, tz } = form.elements;
  const box = form.querySelector(".next");
  const mine = ++latest;
  box.classList.remove("bad");
  if (!when.value.trim()) {
    box.textContent = "The next five times are shown here.";
    return;
  }
  try {
    const told = await ask("GET", "/api/cron/preview?" + new URLSearchParams({ when: when.value, tz: tz.value }));
    if (mine !== latest) return;
    const list = document.createElement("ol");
    list.append(...told.shown.map((time) => line("li", time)));
    const title = told.words === when.value.trim().toLowerCase() ? "Next times" : "Understood as “" + told.words + "”";
    box.replaceChildren(line("b", title), list);
    if (told.note) box.append(line("p", told.note));
    when.setCustomValidity("");
  } catch (err) {
    if (mine !== latest) return;
    box.classList.add("bad");
    box.textContent = err.message.charAt(0).toUpperCase() + err.message.slice(1).replace(/\.?$/, ".");
  }
}

// fieldsOf returns what was changed in a form. When and where are one: a new time has the zone that stands beside it.
function fieldsOf(form) {
  const fields = {};
  for (const field of form.elements) {
    if (!field.name) continue;
    if (field.type === "checkbox") {
      if (field.checked !== field.defaultChecked) fields[field.name] = field.checked;
    } else if (field.value !== field.defaultValue) fields[field.name] = field.value;
  }
  const { when, tz } = form.elements;
  if ("when" in fields || "tz" in fields) {
    fields.when = when.value;
    if (tz.value) fields.tz = tz.value;
  }
  return fields;
}

let typing;
for (const form of document.querySelectorAll("form[data-job]")) {
  form.addEventListener("input", (event) => {
    if (!["when", "tz"].includes(event.target.name)) return;
    clearTimeout(typing);
    typing = setTimeout(() => preview(form), 200);
  });
  form.addEventListener("click", (event) => {
    const { example } = event.target.dataset;
    if (!example) return;
    form.elements.when.value = example;
    form.elements.when.focus();
    preview(form);
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [method, path] = form.dataset.job.split(" ");
    const button = form.querySelector("button.main");
    said.textContent = "";
    button.disabled = true;
    try {
      const job = await ask(method, path, fieldsOf(form));
      location.hash = "job-" + job.id;
      location.reload();
    } catch (err) {
      button.disabled = false;
      complain(err);
    }
  });
  form.closest("details")?.addEventListener("toggle", () => preview(form), { once: true });
}

for (const button of document.querySelectorAll("button[data-ask]")) {
  button.addEventListener("click", async () => {
    if (!confirm(button.dataset.sure)) return;
    const label = button.textContent;
    button.disabled = true;
    button.textContent = "Asking…";
    said.textContent = "Each job is asked once; this takes as long as the answers do.";
    try {
      await ask("POST", button.dataset.ask);
      location.assign(button.dataset.then);
    } catch (err) {
      button.disabled = false;
      button.textContent = label;
      complain(err);
    }
  });
}
