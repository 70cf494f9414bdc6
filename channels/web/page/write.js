// The message box: text, files, and the button to send or stop.

import { $, command, keep, kept, newID, post } from "./wire.js";
import { busy, follow, onBusy } from "./view.js";
import * as upload from "./upload.js";

const text = $("text"), send = $("send");
let wanted = false; // send as soon as the files are uploaded

const words = () => text.value.trim();
const empty = () => !words() && !upload.files.length;

// show sets the button to send or stop and fits the height of the text.
function show() {
  const stop = busy && empty();
  send.ariaLabel = stop ? "Stop" : wanted ? "Sends when the files are uploaded" : "Send";
  send.firstElementChild.firstElementChild.setAttribute("href", stop ? "#i-stop" : "#i-send");
  send.disabled = !stop && (wanted || empty());
  if (!CSS.supports("field-sizing", "content")) {
    text.style.height = "auto";
    text.style.height = text.scrollHeight + "px";
  }
}

function remember() {
  keep("draft", !empty() && { text: text.value, files: upload.done() });
  show();
}

function submit() {
  if (empty()) return busy && stop();
  if (upload.failed()) return upload.explain();
  wanted = upload.waiting();
  if (wanted) return show();
  post({ id: newID(), text: text.value.trim(), files: upload.done(), time: Date.now() });
  text.value = "";
  upload.clear();
  remember();
  follow();
  text.focus();
}

export const stop = () => command("/stop").catch(() => {}); // it can be pressed again

export function start() {
  const draft = kept("draft");
  if (draft && !text.value) text.value = draft.text;
  upload.start(() => {
    if (upload.failed()) wanted = false;
    remember();
  }, () => wanted && submit());
  draft?.files.forEach(upload.take);
  text.addEventListener("input", remember);
  onBusy(show);
  show();

  const touch = matchMedia("(hover: none) and (pointer: coarse)");
  text.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.shiftKey || e.isComposing || touch.matches) return;
    e.preventDefault();
    submit();
  });
  const button = $("record"); // there if voice messages are understood
  if (button) button.onclick = () => { import("./voice.js").then((v) => v.record(submit), () => {}); }; // it can be pressed again
  $("write").addEventListener("submit", (e) => (e.preventDefault(), submit()));
  $("try").onclick = ({ target }) => {
    if (!target.matches("button")) return;
    post({ id: newID(), text: target.textContent, files: [], time: Date.now() });
    follow();
    text.focus();
  };
}
