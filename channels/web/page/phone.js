// What fingers need: the list of conversations is a drawer that can be swiped in and out where there is no room
// for it beside the messages, and the on-screen keyboard does not cover the message box.

import { $ } from "./wire.js";

const side = $("side"), narrow = matchMedia("(max-width: 52rem)");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const isOpen = () => side.matches(":popover-open");

let swipe = null; // {x, y, open, on, dx, at, speed}: where it began, whether the drawer was open; on once it is sideways

// isTaken reports whether a swipe that begins at e belongs to something else: a field, or what is scrolled
// sideways. At the left end of that the drawer opens: browsers would go back a page.
function isTaken(e) {
  for (; e && e !== document.body; e = e.parentElement) {
    if (e.matches("input, textarea, select, dialog")) return true;
    if (e.scrollLeft > 0) return true;
  }
  return false;
}

function begin(e) {
  const [t] = e.touches;
  if (e.touches.length > 1) return end(e); // zooming
  if (!narrow.matches || document.querySelector("dialog[open]") || getSelection().type === "Range" || isTaken(t.target)) return;
  swipe = { x: t.clientX, y: t.clientY, open: isOpen(), on: false, dx: 0, at: e.timeStamp, speed: 0 };
}

function move(e) {
  if (!swipe) return;
  const [t] = e.touches, dx = t.clientX - swipe.x, dy = t.clientY - swipe.y;
  if (!swipe.on) {
    if (Math.hypot(dx, dy) < 10) return;
    if (Math.abs(dx) < 2 * Math.abs(dy) || (swipe.open ? dx > 0 : dx < 0)) return void (swipe = null);
    swipe.on = true;
    side.classList.add("held");
    if (!swipe.open) side.showPopover();
  }
  Object.assign(swipe, { speed: (dx - swipe.dx) / Math.max(1, e.timeStamp - swipe.at), dx, at: e.timeStamp });
  const width = side.offsetWidth;
  side.style.translate = `${Math.max(-width, Math.min(0, dx - (swipe.open ? 0 : width)))}px`;
  if (e.cancelable) e.preventDefault();
}

function end(e) {
  if (!swipe?.on) return void (swipe = null);
  const { dx, open } = swipe, way = open ? -1 : 1, speed = way * swipe.speed;
  const far = Math.abs(speed) > 0.4 ? speed > 0 : way * dx > side.offsetWidth / 2; // a flick, or a pull
  swipe = null;
  rest(e.type !== "touchcancel" && far ? !open : open);
}

// rest lets the drawer slide to where it stays.
function rest(open) {
  if (open && !isOpen()) side.showPopover(); // lifting the finger beside it has closed it
  const from = side.style.translate, settled = () => {
    side.style.translate = "";
    side.classList.remove("held");
    if (!open && isOpen()) side.hidePopover();
  };
  if (still.matches) return settled();
  const slide = side.animate({ translate: [from, open ? "0" : "-100%"] }, { duration: 160, easing: "ease-out" });
  slide.onfinish = slide.oncancel = settled;
}

// fit ends the page above the keyboard, and undoes that the browser has scrolled the page to show the message box.
function fit() {
  const { scale, height, offsetTop } = window.visualViewport, keyboard = scale === 1 && innerHeight - height > 60;
  document.body.style.height = keyboard ? `${height}px` : "";
  document.body.style.top = keyboard ? `${offsetTop}px` : "";
  document.body.classList.toggle("keyboard", keyboard);
  if (keyboard) scrollTo(0, 0);
}

export function start() {
  document.addEventListener("touchstart", begin, { passive: true });
  document.addEventListener("touchmove", move, { passive: false });
  document.addEventListener("touchend", end);
  document.addEventListener("touchcancel", end);
  for (const what of ["resize", "scroll"]) window.visualViewport?.addEventListener(what, fit);
}
