// Signs in by the token typed here, or by the one-time code after the # of the
// address. A code is never sent but in the body of this one request.
const said = document.getElementById("said");
const form = document.getElementById("signin");

async function signIn(by) {
  said.textContent = "One moment…";
  try {
    const answer = await fetch("/signin", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Parley": "1" },
      body: JSON.stringify(by),
    });
    if (answer.ok) return location.replace("/");
    said.textContent = (await answer.json()).error.message.replace(/\.?$/, ".");
    if (by.code && (await isSignedIn())) goOn();
  } catch {
    said.textContent = "There is no connection. Try again.";
  }
}

const isSignedIn = async () => (await fetch("/")).ok;

// goOn offers somebody who is signed in, and whose link is used up, to go on as who they are.
function goOn() {
  const link = document.createElement("a");
  link.href = "/";
  link.textContent = "You are still signed in: go on";
  said.append(" ", link);
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  signIn({ token: form.token.value });
});

// enter signs in by the code in the address, if there is one.
function enter() {
  const code = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  if (code) signIn({ code });
  return Boolean(code);
}

addEventListener("hashchange", () => enter()); // a link pasted into this tab loads nothing anew
if (!enter() && (await isSignedIn())) {
  location.replace("/"); // a link from elsewhere comes without the cookie
}
