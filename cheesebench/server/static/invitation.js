"use strict";
(function () {
  const $ = (id) => document.getElementById(id);
  // Only the browser stores the address at which this person continues.
  const place = "cheesebench" + location.pathname;
  let known = null;
  try { known = localStorage.getItem(place); } catch (error) { /* a browser that keeps nothing: the address of the page is enough */ }
  if (known && /^[A-Za-z0-9_-]{20,80}$/.test(known)) {
    // The address is not offered if the place has been given to somebody else.
    fetch("participant/" + known + "/now").then((response) => {
      if (!response.ok) return;
      $("go-on").href = "participant/" + known + "/";
      $("again").hidden = false;
    }).catch(() => {});
  }
  $("consent").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!$("agree").checked || $("begin").disabled) return;
    $("begin").disabled = true;
    $("trouble").hidden = true;
    try {
      const response = await fetch("join", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ agreed: true }) });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.problem);
      try { localStorage.setItem(place, answer.participant); } catch (error) { /* as above */ }
      location.href = "participant/" + answer.participant + "/";
    } catch (error) {
      $("trouble").textContent = error.message || "The server does not answer. Try again in a moment.";
      $("trouble").hidden = false;
      $("begin").disabled = false;
    }
  });
})();
