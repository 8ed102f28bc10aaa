"use strict";
// One person's page. Nothing is decided here: a key goes to the server, and what it shows is drawn.
(function () {
  const $ = (id) => document.getElementById(id);
  const KEYS = {
    arrowup: "FORWARD", w: "FORWARD", arrowleft: "ROTATE_LEFT", a: "ROTATE_LEFT",
    arrowright: "ROTATE_RIGHT", d: "ROTATE_RIGHT", arrowdown: "STAY", s: "STAY", " ": "STAY",
  };
  // Milliseconds that a moment is shown which goes by whatever the person does; and how often a lost server is asked.
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const MOMENT = still ? 0 : 120, LONGEST = still ? 0 : 1500, RETRY = 1500;
  // A text picture of more columns than a map has is a view in perspective, whose letters must touch.
  const WIDE = 36;
  let at = null, busy = true, waiting = [];

  const pause = (time) => new Promise((done) => setTimeout(done, time));

  function trouble(text) {
    $("trouble").hidden = !text;
    $("trouble").textContent = text;
  }

  async function ask(path, body) {
    const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    for (;;) {
      let response = null;
      try { response = await fetch(path, options); } catch (error) { /* nobody there: it may come back */ }
      if (response && (response.ok || response.status < 500)) {
        if (response.ok) {
          trouble("");
          return response.json();
        }
        trouble(await response.text());
        return null;
      }
      trouble(response ? await response.text() : "The server does not answer. Nothing is lost; this page tries again.");
      await pause(RETRY);
    }
  }

  function draw(one) {
    const isPicture = one.picture !== null;
    $("picture").hidden = !isPicture;
    if (isPicture) {
      $("picture").src = "data:image/png;base64," + one.picture;
      $("picture").alt = "What you see now";
    }
    $("observation").textContent = one.text;
    $("observation").hidden = isPicture && !one.text;
    const columns = Math.max(12, ...one.text.split("\n").map((line) => line.length));
    $("observation").style.setProperty("--columns", String(columns));
    $("observation").classList.toggle("dense", columns > WIDE);
    tell(one);
  }

  // The words that a model is told, too.
  function tell(one) {
    const times = one.times > 1 ? " x" + one.times : "";
    let text = one.action ? one.action + times + ": reward " + one.reward + (one.times > 1 ? " each" : "") : "NEW TRIAL";
    if (one.ended) text += " · TRIAL ENDED";
    $("told").textContent = text;
    const reward = Number(one.reward || 0);
    $("told").className = "told" + (reward > 0 ? " good" : reward < 0 ? " bad" : "");
  }

  async function play(list) {
    waiting = list;
    while (waiting.length) {
      const one = waiting.shift();
      draw(one);
      if (one.ended && waiting.length) {
        rest(true);
        return;
      }
      const next = waiting[0];
      if (next && next.action === "waited") await pause(MOMENT);
      if (one.action === "waited" && waiting.length) await pause(Math.min(MOMENT * one.times, LONGEST));
      if (one.ended) await pause(LONGEST);
    }
    rest(false);
  }

  // After a trial a person goes on when they want to; a key that was meant for the last one is not taken for the next.
  function rest(between) {
    $("next").hidden = !between;
    $("pad").classList.toggle("resting", between);
    for (const button of $("pad").querySelectorAll("button")) button.disabled = between;
    if (between) $("next").focus();
    busy = between;
    document.body.dataset.ready = between ? "next" : at; // for tests: what is waited for, a click or a key
  }

  function finish() {
    $("world").hidden = $("instructions").hidden = true;
    $("thanks").hidden = false;
    $("thanks-title").focus();
    document.body.dataset.ready = "over";
  }

  async function show(state) {
    if (!state) return;
    at = state.at;
    if (state.stale) trouble("This went on in another window; here is where you are now.");
    await play(state.shown);
    if (state.over && $("next").hidden) finish();
  }

  let over = false;
  async function act(action) {
    if (busy) return;
    busy = true;
    const state = await ask("act", { at, action });
    if (!state) {
      busy = false;
      return;
    }
    over = state.over;
    await show(state);
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("world").hidden) return;
    const key = event.key.toLowerCase();
    if (!KEYS[key] || event.target.closest("summary")) return;
    // Space presses the button that has the focus, and a button of the pad does what it says.
    if (key === " " && event.target.closest("button")) return;
    event.preventDefault();
    if (!event.repeat) act(KEYS[key]);
  });
  $("pad").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) act(button.dataset.action);
  });
  $("next").addEventListener("click", () => {
    $("next").hidden = true;
    $("screen").focus({ preventScroll: true });
    play(waiting).then(() => { if (over && $("next").hidden) finish(); });
  });
  $("start").addEventListener("click", () => {
    $("instructions").open = false;
    $("start").hidden = true;
    $("world").hidden = false;
    $("screen").focus({ preventScroll: true });
  });

  ask("now").then((state) => {
    over = Boolean(state && state.over);
    show(state);
  });
})();
