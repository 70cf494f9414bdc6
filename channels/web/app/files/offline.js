// The page that says that Parley is out of reach gives way to what was asked for once there is a network again.
addEventListener("online", () => location.reload());
