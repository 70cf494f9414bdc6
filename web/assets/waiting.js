// Shows in the navigation how many questions and approvals of the chat await who is signed in, with a link to the first of
// their conversations: live on a page that is kept up to date, and elsewhere whenever somebody comes to look.
const links = [...document.querySelectorAll("[data-waiting]")];
let source, soon;

async function look() {
  const answer = await fetch("/talks").catch(() => null); // it is asked again
  if (!answer?.ok || !answer.headers.get("Content-Type")?.includes("json")) return;
  const open = (await answer.json()).filter((talk) => talk.asks);
  const count = open.reduce((sum, talk) => sum + talk.asks, 0);
  for (const link of links) {
    link.hidden = count === 0;
    if (count === 0) continue;
    link.href = `/c/${encodeURIComponent(open[0].id)}`;
    link.title = open[0].title;
    link.querySelector("b").textContent = count;
  }
}

// The chat tells its pages that the list of conversations has changed. Nothing that was said before is wanted.
function follow() {
  if (document.hidden) return;
  look();
  if (source || !document.querySelector("[data-live]")) return;
  source = new EventSource(`/c/first/events?after=${Number.MAX_SAFE_INTEGER}`);
  source.addEventListener("open", look);
  source.addEventListener("talks", () => {
    clearTimeout(soon);
    soon = setTimeout(look, 100);
  });
  source.addEventListener("resync", () => (rest(), follow()));
}

function rest() {
  source?.close();
  source = undefined;
}

// Who does not look costs nothing.
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : follow()));
addEventListener("pagehide", rest);
addEventListener("pageshow", follow);
