// Opens the line that the address names, such as #lM12, also after a line was corrected.
function open() {
  const line = document.getElementById(location.hash.slice(1));
  if (line?.localName !== "details") return;
  line.open = true;
  line.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", open);
open();
