"use strict";
document.getElementById("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const password = document.getElementById("password").value;
  const reply = await fetch("/login", {method: "POST", body: JSON.stringify({password})});
  if (reply.ok) {
    location.href = "/";
    return;
  }
  const fault = document.getElementById("fault");
  fault.textContent = (await reply.json()).error;
  fault.hidden = false;
});
