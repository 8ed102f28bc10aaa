"use strict";
// The page of one person. It decides nothing: it sends keys to the server, and draws what the server shows.
(function () {
  const $ = (id) => document.getElementById(id);
  const KEYS = {
    arrowup: "FORWARD", w: "FORWARD", arrowleft: "ROTATE_LEFT", a: "ROTATE_LEFT",
    arrowright: "ROTATE_RIGHT", d: "ROTATE_RIGHT", arrowdown: "STAY", s: "STAY", " ": "STAY",
  };
  // In milliseconds. MOMENT: time for which each step that passes by itself is shown. LONGEST: maximum for several such steps together. RETRY: time between attempts to reach the server.
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const MOMENT = still ? 0 : 120, LONGEST = still ? 0 : 1500, RETRY = 1500;
  // A text picture with more columns than this is a view in perspective, whose letters must touch.
  const WIDE = 36;
  let at = null, busy = true, waiting = [];
  // Maximum number of keys that are kept while the server handles a step: about as many as a person presses in a second.
  const MOST = 5;
  let pressed = [];
  // task: number of the task that is shown. place: the trial's number, in words. since: time from which the person could act. paused: time at which a pause began, or 0. over: whether all tasks are done.
  let task = null, place = "", since = 0, paused = 0, over = false;
  const NAMES = { FORWARD: "Forward", ROTATE_LEFT: "Turned left", ROTATE_RIGHT: "Turned right", STAY: "Waited", waited: "Time passes" };

  const pause = (time) => new Promise((done) => setTimeout(done, time));

  function trouble(text) {
    $("trouble").hidden = !text;
    $("trouble").textContent = text;
  }

  async function ask(path, body) {
    const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    for (;;) {
      let response = null;
      try { response = await fetch(path, options); } catch (error) { /* the server is gone, but may come back */ }
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

  // The only arrow of a map from above is the person. It has the accent colour.
  function marked(text) {
    const parts = text.split(/([↑→↓←↖↗↘↙])/u);
    if (parts.length !== 3) return [text];
    const self = document.createElement("span");
    self.className = "agent";
    self.textContent = parts[1];
    return [parts[0], self, parts[2]];
  }

  function draw(one) {
    const isPicture = one.picture !== null;
    $("picture").hidden = !isPicture;
    if (isPicture) {
      $("picture").src = "data:image/png;base64," + one.picture;
      $("picture").alt = "What you see now";
    }
    $("observation").replaceChildren(...marked(one.text));
    $("observation").hidden = isPicture && !one.text;
    const columns = Math.max(12, ...one.text.split("\n").map((line) => line.length));
    $("observation").style.setProperty("--columns", String(columns));
    $("observation").style.setProperty("--rows", String(one.text.split("\n").length));
    $("observation").classList.toggle("dense", columns > WIDE);
    tell(one);
  }

  // Say what happened in a step, in words for people. A model is told the same.
  function tell(one) {
    const times = one.times > 1 ? " ×" + one.times : "";
    let text = one.action ? NAMES[one.action] + times + ": reward " + one.reward + (one.times > 1 ? " each" : "") : "A new trial begins";
    if (one.ended) text += " · The trial is over";
    if (!waiting.length && place) $("place").textContent = place;
    $("told").textContent = text;
    const reward = Number(one.reward || 0);
    $("told").className = "told" + (reward > 0 ? " good" : reward < 0 ? " bad" : "");
  }

  async function play(list) {
    waiting = list;
    while (waiting.length) {
      const one = waiting.shift();
      draw(one);
      if (one.ended) {
        rest(true);
        return;
      }
      const next = waiting[0];
      if (next && next.action === "waited") await pause(MOMENT);
      if (one.action === "waited" && waiting.length) await pause(Math.min(MOMENT * one.times, LONGEST));
    }
    rest(false);
  }

  // After a trial, the person starts the next one. Keys that were meant for the last trial do not count in it.
  function rest(between) {
    const other = between && !over && task !== at.split(".")[0];
    if (!between) task = at.split(".")[0];
    $("other").hidden = !other;
    $("next").textContent = over ? "Finish" : other ? "Next task" : "Next trial";
    $("next").hidden = !between;
    $("pad").classList.toggle("resting", between);
    for (const button of $("pad").querySelectorAll("button")) button.disabled = between;
    if (between) {
      pressed = [];
      $("next").focus();
    }
    busy = between;
    since = performance.now();
    document.body.dataset.ready = between ? "next" : at; // for tests: whether the page waits for a click or a key
  }

  function pauseOrGoOn() {
    if (paused) since += performance.now() - paused;
    paused = paused ? 0 : performance.now();
    document.body.classList.toggle("paused", paused > 0);
    $("paused").hidden = !paused;
    $("pause").textContent = paused ? "Go on" : "Pause";
    if (!paused) ($("next").hidden ? $("screen") : $("next")).focus({ preventScroll: true });
  }

  async function show(state) {
    if (!state) return;
    at = state.at;
    place = state.place;
    if (state.stale) trouble("This went on in another window; here is where you are now.");
    over = state.over;
    if (over && !state.shown.length) return location.reload();
    await play(state.shown);
  }

  async function act(action, when) {
    if (paused) return;
    if (busy) {
      if ($("next").hidden && pressed.length < MOST) pressed.push([action, when]);
      return;
    }
    busy = true;
    const state = await ask("act", { at, action, after: Math.max(0, Math.round(when - since)) });
    if (!state) {
      busy = false;
      pressed = [];
      return;
    }
    if (state.shown.some((one) => one.ended)) pressed = [];
    await show(state);
    if (pressed.length && !busy && !over) act(...pressed.shift());
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("world").hidden) return;
    const key = event.key.toLowerCase();
    if (!KEYS[key] || event.target.closest("summary")) return;
    // If a button has the focus, the space bar presses that button.
    if (key === " " && event.target.closest("button")) return;
    event.preventDefault();
    if (!event.repeat) act(KEYS[key], performance.now());
  });
  $("pad").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) act(button.dataset.action, performance.now());
  });
  $("next").addEventListener("click", () => {
    if (over) return location.reload(); // the server has another page for people who have finished
    $("next").hidden = true;
    $("screen").focus({ preventScroll: true });
    play(waiting);
  });
  $("pause").addEventListener("click", pauseOrGoOn);
  $("start").addEventListener("click", () => {
    $("instructions").open = false;
    $("start").hidden = true;
    $("world").hidden = false;
    document.body.classList.add("playing");
    since = performance.now();
    $("screen").focus({ preventScroll: true });
  });

  ask("now").then(show);
})();
