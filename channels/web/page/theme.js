// The colours that somebody chose, kept in the browser. It is no module: it runs before
// the page is drawn, so that no other colours flash up.

(() => {
  const key = "theme";

  // show shows the page in the colours that are kept; as the system has them if none are.
  const show = () => {
    let chosen = "";
    try {
      chosen = localStorage.getItem(key) ?? "";
    } catch {} // the browser keeps nothing
    if (chosen !== "light" && chosen !== "dark") chosen = "";
    document.documentElement.dataset.theme = chosen;
    for (const option of document.querySelectorAll("#theme input")) option.checked = option.value === chosen;
  };
  show();
  addEventListener("storage", show); // another tab
  addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").onchange = ({ target }) => {
      try {
        target.value ? localStorage.setItem(key, target.value) : localStorage.removeItem(key);
      } catch {
        return void (document.documentElement.dataset.theme = target.value); // for as long as the page lasts
      }
      show();
    };
  });
})();
