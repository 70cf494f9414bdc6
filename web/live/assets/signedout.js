// What pages with events do when they are refused because nobody is signed in any more.

// isSignedOut finds out whether the events at url were refused for that, which EventSource does not tell.
export async function isSignedOut(url) {
  const asking = new AbortController();
  try {
    return (await fetch(url, { signal: AbortSignal.any([asking.signal, AbortSignal.timeout(5000)]) })).status === 401;
  } catch {
    return false; // there is no connection
  } finally {
    asking.abort();
  }
}

// words say it, with a way back.
export function words() {
  const link = document.createElement("a");
  link.href = "/signin";
  link.textContent = "Sign in";
  return ["You are signed out. ", link];
}
