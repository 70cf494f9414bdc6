// The colours that somebody chose on the chat page, which keeps them in the browser. It is no module: it runs before the
// page is drawn, so that no other colours flash up.
(() => {
  const show = () => {
    let chosen = "";
    try {
      chosen = localStorage.getItem("theme") ?? "";
    } catch {} // the browser keeps nothing
    document.documentElement.dataset.theme = chosen;
  };
  show();
  addEventListener("storage", show); // chosen in another tab
})();
