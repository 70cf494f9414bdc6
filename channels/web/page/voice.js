// Recording a voice message, in the place of the message box: time, level, cancel, send. What was recorded is sent as a
// file like any other, so that a poor connection loses nothing.

import { $, icon, make, style } from "./wire.js";
import * as upload from "./upload.js";

style("voice.css");

const longest = 15 * 60; // seconds; after that it waits to be sent
const silence = 4; // seconds without a sound, after which somebody should know
const kinds = [["audio/webm;codecs=opus", "weba"], ["audio/mp4", "m4a"], ["audio/ogg;codecs=opus", "ogg"], ["audio/webm", "weba"]];

const excuses = {
  NotAllowedError: "Your browser does not let this page use the microphone. You can allow it beside the address, and try again.",
  NotFoundError: "There is no microphone here. Is it plugged in?",
  NotReadableError: "The microphone is in use by another program. Close that, and try again.",
};
const insecure = "Browsers record only on pages with https, or on the computer that Parley runs on.";
const unknown = "Recording does not work in this browser. You can attach a sound file instead.";

const box = $("write").querySelector(".box"), why = $("why"), still = matchMedia("(prefers-reduced-motion: reduce)");
let session; // the recording under way: {recorder, stream, sound, parts, began, heard, stopped, sent}

const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

// record asks for the microphone and begins, or says kindly why not. submit sends what is in the message box.
export async function record(submit) {
  if (session) return;
  session = {};
  why.replaceChildren();
  let stream;
  try {
    if (!isSecureContext) throw new Error(insecure);
    if (!navigator.mediaDevices || !window.MediaRecorder) throw new Error(unknown);
    stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1, echoCancellation: true, noiseSuppression: true } });
    begin(stream, submit);
  } catch (e) {
    stream?.getTracks().forEach((t) => t.stop());
    session = undefined;
    why.textContent = e.message === insecure ? insecure : excuses[e.name] ?? unknown;
    $("record").focus();
  }
}

function begin(stream, submit) {
  const kind = kinds.find(([type]) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(stream, { mimeType: kind?.[0], audioBitsPerSecond: 32000 });
  const sound = new AudioContext({ latencyHint: "playback" }), meter = sound.createAnalyser();
  sound.createMediaStreamSource(stream).connect(meter);
  const view = show(submit);
  session = { recorder, stream, sound, view, parts: [], began: performance.now(), heard: performance.now(), suffix: kind?.[1] ?? "ogg" };
  recorder.ondataavailable = ({ data }) => {
    if (!session) return;
    if (data.size) session.parts.push(data);
    if (performance.now() - session.began >= longest * 1000) pause(); // in a hidden tab nothing is drawn
  };
  recorder.start(1000);
  stream.getAudioTracks()[0].onended = pause; // it was unplugged, or taken away
  addEventListener("beforeunload", hold);
  draw(session, meter);
}

const hold = (e) => e.preventDefault();

// show puts the recorder into the place of the message box.
function show(submit) {
  const time = make("span", { className: "time", role: "timer", ariaLabel: "Recorded" }, "0:00");
  const level = make("canvas", { width: 600, height: 64, ariaHidden: "true" });
  const said = make("span", { className: "said", role: "status" });
  const cancel = make("button", { type: "button", className: "plain", id: "discard", ariaLabel: "Discard the recording", onclick: () => end() }, icon("bin"));
  const send = make("button", { type: "button", id: "speak", ariaLabel: "Send the recording", onclick: () => finish(submit) }, icon("send"));
  const panel = make("div", { id: "recorder", role: "group", ariaLabel: "Voice message" }, cancel, make("i", { className: "dot", ariaHidden: "true" }), time, level, said, send);
  panel.onkeydown = (e) => {
    if (e.key !== "Escape") return;
    e.preventDefault();
    e.stopPropagation(); // it would stop the agent
    end();
  };
  box.classList.add("recording");
  box.append(panel);
  send.focus();
  setTimeout(() => (said.textContent = "Recording"), 100); // screen readers tell what changes
  return { time, level, said, panel };
}

// draw shows time and level until the recording is over: the latest loudness is a bar at the right end, and moves left.
// Who wants no motion sees one bar that is as long as it is loud.
function draw(s, meter) {
  const { level, time, said } = s.view, c = level.getContext("2d"), sample = new Float32Array(meter.fftSize), bars = [];
  const bar = (x, y, width, height) => (c.beginPath(), c.roundRect(x, y, width, height, Math.min(width, height) / 2), c.fill());
  let last = 0, loud = 0; // the loudest since the last bar
  const step = (now) => {
    if (session !== s || s.stopped) return;
    requestAnimationFrame(step);
    meter.getFloatTimeDomainData(sample);
    loud = Math.max(loud, Math.min(1, 4 * Math.sqrt(sample.reduce((sum, v) => sum + v * v, 0) / sample.length)));
    if (loud > 0.004) s.heard = now;
    if (now - last < (still.matches ? 500 : 60)) return;
    last = now;
    bars.push(loud);
    const wide = level.clientWidth, high = level.clientHeight, scale = devicePixelRatio;
    bars.splice(0, bars.length - Math.ceil(wide / 5));
    Object.assign(level, { width: wide * scale, height: high * scale });
    c.scale(scale, scale);
    c.fillStyle = getComputedStyle(level).color;
    if (still.matches) {
      bar(0, high / 2 - 4, Math.max(8, loud * wide), 8);
      c.globalAlpha = 0.2;
      bar(0, high / 2 - 4, wide, 8);
    } else bars.forEach((v, i) => bar(wide - 5 * (bars.length - i), (1 - Math.max(0.11, v)) * high / 2, 3, Math.max(0.11, v) * high));
    level.dataset.level = loud.toFixed(3);
    loud = 0;
    const seconds = (now - s.began) / 1000;
    time.textContent = clock(seconds);
    const quiet = (now - s.heard) / 1000 > silence;
    said.textContent = quiet ? "I hear nothing. Is the microphone on?" : "Recording";
    said.classList.toggle("unseen", !quiet);
  };
  said.classList.add("unseen");
  requestAnimationFrame(step);
}

// pause ends what is recorded, which then waits to be sent or discarded.
function pause() {
  if (!session?.recorder || session.stopped) return;
  session.stopped = true;
  session.recorder.state === "inactive" || session.recorder.stop();
  session.view.said.textContent = "The recording has ended: send it, or discard it.";
  session.view.said.classList.remove("unseen");
  session.view.panel.classList.add("over");
}

// finish sends the recording, with what else is in the message box.
async function finish(submit) {
  const s = session, { recorder, parts, suffix } = s;
  if (s.sent) return; // pressed twice
  s.sent = true;
  if (recorder.state !== "inactive") {
    const stopped = new Promise((done) => recorder.addEventListener("stop", done, { once: true }));
    recorder.stop();
    await stopped; // the last part comes before
  }
  if (session !== s) return; // it was discarded meanwhile
  const blob = new File(parts, `Voice message.${suffix}`, { type: recorder.mimeType.split(";")[0] });
  end();
  if (!blob.size) return void (why.textContent = "Nothing was recorded. Please try again.");
  upload.take({ name: blob.name, type: blob.type, size: blob.size, blob, voice: true });
  submit();
}

// end closes the recorder and gives the microphone back.
function end() {
  const s = session;
  if (!s) return;
  session = undefined;
  removeEventListener("beforeunload", hold);
  s.recorder.ondataavailable = null;
  if (s.recorder.state !== "inactive") s.recorder.stop();
  s.stream.getTracks().forEach((t) => t.stop());
  s.sound.close();
  s.view.panel.remove();
  box.classList.remove("recording");
  $("text").focus();
}
