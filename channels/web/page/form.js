// Forms. The server has made their HTML, and checks what is filled in.

import { keep, kept } from "./wire.js";
import { controls, formKey, settle } from "./view.js";

const fields = (form) => [...form.querySelectorAll("[data-field]")];
const hasCheck = (c) => c.type === "radio" || c.type === "checkbox";

// prepare makes a form usable: it shows moments in local time, brings back what was filled in
// before the page was loaded again, and keeps what is filled in until the question is over.
export function prepare(form) {
  if (form.oninput) return;
  const all = controls(form), before = kept(formKey(form));
  for (const c of all) if (c.dataset.moment) c.value = local(new Date(c.dataset.moment));
  if (before?.length === all.length) all.forEach((c, i) => (hasCheck(c) ? (c.checked = before[i]) : (c.value = before[i])));
  form.oninput = ({ target }) => {
    keep(formKey(form), all.map((c) => (hasCheck(c) ? c.checked : c.value)));
    say(target.closest("[data-field]"), "");
  };
  form.onsubmit = (e) => { e.preventDefault(); }; // the click on the button was the answer
}

const two = (n) => String(n).padStart(2, "0");

// local writes a moment as an input of local time has it; "" if it is none.
function local(at) {
  if (isNaN(at)) return "";
  const clock = [at.getHours(), at.getMinutes(), ...(at.getSeconds() ? [at.getSeconds()] : [])];
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${clock.map(two).join(":")}`;
}

// moment writes the value of such an input with the offset that is in force then.
function moment(value) {
  const at = new Date(value), east = -at.getTimezoneOffset(), off = Math.abs(east);
  if (isNaN(at)) return value;
  return `${value.length === 16 ? value + ":00" : value}${east < 0 ? "-" : "+"}${two(Math.floor(off / 60))}:${two(off % 60)}`;
}

// valuesOf returns what is filled in for a field.
function valuesOf(field) {
  return controls(field).flatMap((c) => {
    if (c.type === "select-one") c = c.selectedOptions[0];
    else if (hasCheck(c) ? !c.checked : !c.value) return [];
    if ("none" in c.dataset) return [];
    return [c.type === "datetime-local" ? moment(c.value) : c.value];
  });
}

// read returns what is filled in for each field, or says which fields the browser cannot read.
export function read(form) {
  const unread = fields(form).map((f) => controls(f).find((c) => c.validity.badInput)?.validationMessage ?? "");
  if (!unread.some(Boolean)) return fields(form).map(valuesOf);
  showWrong(form, unread);
}

// showWrong opens a form again and says what is wrong with each field.
export function showWrong(form, problems) {
  settle(form, null);
  fields(form).forEach((f, i) => say(f, problems[i]));
  controls(form).find((c) => c.ariaInvalid === "true")?.focus();
}

// say says what is wrong with a field; "" for nothing.
function say(field, problem) {
  const wrong = field.querySelector(".wrong");
  wrong.textContent = problem;
  wrong.hidden = !problem;
  for (const c of controls(field)) problem ? (c.ariaInvalid = "true") : c.removeAttribute("aria-invalid");
}
