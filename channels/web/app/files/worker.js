// The service worker: a page that says so when Parley is out of reach, and notifications. It keeps nothing that is
// private, and no page: only the files below, of this version.

const cacheName = "parley-" + version;
const files = ["/app/offline.html", "/app/offline.css", "/app/offline.js"];

self.addEventListener("install", (e) => {
  self.skipWaiting();
  e.waitUntil(caches.open(cacheName).then((c) => c.addAll(files.map((f) => new Request(f, { cache: "reload" })))));
});

self.addEventListener("activate", (e) => e.waitUntil((async () => {
  for (const name of await caches.keys()) if (name !== cacheName) await caches.delete(name);
  await self.clients.claim();
})()));

// Only what is asked for while there is no connection is answered here: the page by the one that says so, and what that needs.
self.addEventListener("fetch", (e) => {
  const { pathname, origin } = new URL(e.request.url);
  if (e.request.mode === "navigate" && e.request.method === "GET") e.respondWith(fetch(e.request).catch(() => caches.match(files[0])));
  else if (origin === self.location.origin && files.includes(pathname)) e.respondWith(fetch(e.request).catch(() => caches.match(pathname)));
});

const show = ({ title, text, tag, url }) => self.registration.showNotification(title, {
  body: text, tag, data: { url }, icon: "/app/icon-192.png", badge: "/app/badge-96.png",
});

self.addEventListener("push", (e) => {
  let said = { title: "Parley", text: "New answer", tag: "parley", url: "/" };
  try {
    said = { ...said, ...e.data.json() };
  } catch {} // a browser expects that each push shows something
  e.waitUntil(show(said));
});

// A click opens the conversation: in a tab that shows it, or in any of ours, or in a new one.
self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(open(new URL(e.notification.data?.url ?? "/", self.location.origin)));
});

async function open(url) {
  if (url.origin !== self.location.origin) return;
  const tabs = (await self.clients.matchAll({ type: "window", includeUncontrolled: true }))
    .filter((c) => ["/", "/c"].includes(new URL(c.url).pathname.replace(/\/[^/]*$/, "") || "/"));
  const same = tabs.find((c) => new URL(c.url).pathname === url.pathname);
  if (same) return same.focus().catch(() => {});
  if (!tabs.length) return self.clients.openWindow(url.href);
  const tab = await tabs[0].focus().catch(() => tabs[0]);
  return tab.navigate(url.href).catch(() => self.clients.openWindow(url.href));
}
