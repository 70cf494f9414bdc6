// What a column of a chart says is shown above it while it is pointed at, focused or tapped. The arrow keys
// go from column to column: a chart is one stop of the Tab key.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true"); // it repeats the label of the column
document.body.append(tip);

function show(column) {
  const place = column.querySelector(".area").getBoundingClientRect();
  tip.textContent = column.getAttribute("aria-label");
  tip.hidden = false;
  const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = Math.max(8, Math.min(most, place.left + place.width / 2 - tip.offsetWidth / 2)) + scrollX + "px";
  tip.style.top = Math.max(0, place.top - tip.offsetHeight - 4) + scrollY + "px";
}

const hide = () => (tip.hidden = true);
const columnOf = (event) => event.target.closest?.(".chart .column");

for (const type of ["pointerover", "focusin", "click"]) {
  document.addEventListener(type, (event) => {
    const column = columnOf(event);
    if (column) show(column);
    else if (type !== "focusin") hide();
  });
}
document.addEventListener("focusout", hide);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hide();
  const column = columnOf(event);
  if (!column) return;
  const all = [...column.parentElement.querySelectorAll(".column")];
  const at = all.indexOf(column);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = all[Math.max(0, Math.min(all.length - 1, to))];
  column.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
});
