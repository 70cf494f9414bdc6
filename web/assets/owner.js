// Sends the requests that buttons and forms of the owner's pages describe in data attributes.
const said = document.getElementById("said");

async function act(method, path, body) {
  const headers = { "X-Parley": "1" };
  if (body) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method, headers, body });
  if (answer.status === 204) return null;
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error.message);
  return told;
}

// tell shows a link or a key, which is shown only once.
function tell(told) {
  const box = document.createElement("output");
  box.textContent = told.link ?? told.secret;
  said.replaceChildren(told.link ? "This link signs in once: " : "This key is shown only now: ", box);
  said.tabIndex = -1;
  said.focus();
}

async function go(element, method, path, body) {
  if (element.dataset.sure && !confirm(element.dataset.sure)) return;
  said.textContent = "";
  try {
    const told = await act(method, path, body);
    if (told?.link ?? told?.secret) tell(told);
    else location.assign(element.dataset.then ?? location.href);
  } catch (err) {
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
  go(form, "POST", form.dataset.post, JSON.stringify(Object.fromEntries(new FormData(form))));
});
