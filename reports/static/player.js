"use strict";
// The trial player. All texts of a model or a protocol are put on the page with textContent, never as markup.
(function () {
  const WORDS = { F: "FORWARD", L: "ROTATE_LEFT", R: "ROTATE_RIGHT", S: "STAY", ".": "waited (the state is frozen)", "?": "answered" };
  const SIGNS = { F: "↑", L: "↺", R: "↻", S: "•", ".": "·", "?": "…" };
  // A text picture with more columns than this is a view in perspective, whose letters must touch.
  const WIDE = 36;
  const cells = trials.index;
  const $ = (id) => document.getElementById(id);
  if (!cells.length) return;

  const player = $("player");
  // The present position: number of the cell, its trials (all, and those that can be picked), the trial and the step.
  let cell = -1, shelf = null, pickable = [], trial = null, cost = 0, step = 0, timer = null;

  // -- small helpers

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  function fill(select, entries, chosen) {
    select.replaceChildren(...entries.map(([value, text]) => {
      const option = element("option", text);
      option.value = value;
      return option;
    }));
    select.value = String(chosen);
  }

  function number(value) {
    return typeof value === "number" ? String(Math.round(value * 1000) / 1000) : String(value);
  }

  const mark = (one) => (one.success === null ? "–" : one.success ? "✔" : "✘");

  // The agent, which is the only arrow of a map seen from above, in the colour of models.
  function marked(text) {
    const parts = text.split(/([↑→↓←↖↗↘↙])/u);
    return parts.length === 3 ? [parts[0], element("span", parts[1], "agent"), parts[2]] : [text];
  }

  // The longest line of any observation determines the size of the letters.
  function widest(observations) {
    let most = 12;
    for (const seen of observations) {
      for (const row of (typeof seen === "object" ? seen.text : seen).split("\n")) most = Math.max(most, row.length);
    }
    return most;
  }

  function tallest(observations) {
    return Math.max(12, ...observations.slice(0, 500).map((seen) => (typeof seen === "object" ? seen.text : seen).split("\n").length));
  }

  // -- choosing

  async function open(wanted) {
    pause();
    if (wanted !== cell) {
      cell = wanted;
      $("pick-cell").value = String(cell);
      shelf = null;
      const entry = cells[cell];
      let problem = entry.problem;
      if (!problem && !$("trials-" + cell).textContent) problem = "No trial of this cell is on this page.";
      try {
        if (!problem) shelf = await trials.unpack(cell);
      } catch (error) {
        problem = "This browser cannot unpack the trials (" + error + "). Use a newer one.";
      }
      if (wanted !== cell) return false; // Another cell was picked meanwhile.
      $("trouble").hidden = !problem;
      $("trouble").textContent = problem;
      $("stage").hidden = Boolean(problem);
      if (shelf) {
        const columns = widest(shelf.observations);
        $("observation").style.setProperty("--columns", String(columns));
        $("observation").style.setProperty("--lines", String(tallest(shelf.observations)));
        $("observation").classList.toggle("dense", columns > WIDE && !cells[cell].prose);
        $("observation").classList.toggle("prose", cells[cell].prose);
      }
    }
    return shelf !== null;
  }

  function offer() {
    const failed = shelf.trials.filter((one) => one.success === false);
    const only = $("only-failed");
    only.disabled = failed.length === 0;
    only.parentElement.hidden = shelf.trials.every((one) => one.success === null);
    if (only.disabled) only.checked = false;
    pickable = only.checked ? failed : shelf.trials;
  }

  function choose(wanted, at) {
    pause();
    trial = wanted;
    const subjects = [...new Set(pickable.map((one) => one.subject))];
    fill($("pick-subject"), subjects.map((subject) => [subject, String(subject)]), trial.subject);
    const own = pickable.filter((one) => one.subject === trial.subject);
    fill($("pick-trial"), own.map((one) => [one.trial, mark(one) + " " + one.trial + ": " + one.outcome + ", " + one.actions.length + " steps"]), trial.trial);
    $("scrub").max = String(trial.actions.length);
    cost = usualCost();
    const asked = new Set((trial.calls || []).map((call) => call.step));
    $("ribbon").replaceChildren(...[...trial.actions].map((letter, index) => {
      const sign = element("span", SIGNS[letter] || letter, kind(trial.rewards[index + 1] || 0));
      if (asked.has(index)) sign.classList.add("asked");
      sign.dataset.step = String(index + 1);
      sign.title = index + 1 + " " + WORDS[letter];
      return sign;
    }));
    facts();
    show(at);
  }

  // Return the reward that a tenth of all steps do not exceed (at most 0). Only a lower reward is shown as bad.
  function usualCost() {
    const rewards = [...trial.actions].map((letter, index) => trial.rewards[index + 1] || 0).sort((a, b) => a - b);
    return Math.min(0, rewards[Math.floor(rewards.length / 10)]);
  }

  const kind = (reward) => (reward > 0 ? "good" : reward < cost ? "bad" : "");

  function facts() {
    const rows = [
      ["outcome", mark(trial) + " " + trial.outcome],
      ["block", trial.block],
      ["session", trial.session],
      [cells[cell].counts, trial.compared ? "yes" : "no"],
    ].filter(([, value]) => value !== "").concat(Object.entries(trial.measures).map(([name, value]) => [name, value === null ? "–" : number(value)]));
    $("trial-facts").replaceChildren(...rows.map(([name, value]) => {
      const row = element("div");
      row.append(element("dt", name), element("dd", String(value)));
      return row;
    }));
  }

  async function go(wanted, subject, number_, at) {
    if (!(await open(wanted))) return;
    offer();
    let found = shelf.trials.find((one) => one.subject === subject && one.trial === number_);
    if (found && !pickable.includes(found)) {
      $("only-failed").checked = false;
      offer();
    }
    if (!found) found = pickable.find((one) => one.subject === subject) || pickable[0];
    choose(found, at);
  }

  function beside(distance) {
    const next = pickable[pickable.indexOf(trial) + distance];
    if (next) choose(next, 0);
  }

  // -- showing a step

  function show(wanted) {
    step = Math.min(Math.max(wanted, 0), trial.actions.length);
    const last = trial.actions.length;
    const letter = step ? trial.actions[step - 1] : "";
    const reward = trial.rewards[step] || 0;
    const action = step ? WORDS[letter] || letter : "none yet";
    $("scrub").value = String(step);
    $("scrub").setAttribute("aria-valuetext", "step " + step + " of " + last);
    $("clock").textContent = step + " / " + last;
    observe(shelf.observations[trial.observations[step]]);
    $("now-action").textContent = step ? (SIGNS[letter] || "") + " " + action : action;
    $("now-reward").textContent = number(reward);
    $("now-reward").className = kind(reward);
    let total = 0;
    for (const [at, gained] of Object.entries(trial.rewards)) if (Number(at) <= step) total += gained;
    $("now-total").textContent = number(total);
    const fired = trial.events.filter((event) => event[0] === step).map((event) => event[2] + " (in " + event[1] + ")");
    $("now-events").textContent = fired.join(", ") || "–";
    $("sentence").textContent = "Step " + step + " of " + last + ": "
      + (step ? action + ", reward " + number(reward) + "." : "the trial begins.")
      + (step === last ? " The trial ends: " + trial.outcome + "." : "");
    const before = $("ribbon").querySelector(".now");
    if (before) before.classList.remove("now");
    if (step) {
      const sign = $("ribbon").children[step - 1];
      sign.classList.add("now");
      const ribbon = $("ribbon");
      ribbon.scrollTop = Math.max(0, sign.offsetTop - ribbon.offsetTop - ribbon.clientHeight / 2);
    }
    above();
    tell();
    remember();
  }

  // Draw the arena from above, in its own orientation, with the path so far.
  function above() {
    const ground = cells[cell].ground;
    $("above").hidden = !ground || !trial.at;
    if ($("above").hidden) return;
    const [x, y] = trial.at.slice(3 * step);
    $("above-caption").textContent = maps.caption(ground) + (ground.centre ? " as they stand in this trial" : "");
    const map = maps.floor(ground, "The arena from above at step " + step + ": column " + x + ", row " + y, null, -trial.room.turn);
    if ($("show-goal").checked) maps.goals(map, maps.goalsAt(trial, step));
    maps.path(map, trial.at, step, "track");
    maps.dot(map, trial.at, 0, "start");
    maps.subject(map, trial.at, step);
    $("above-map").replaceChildren(map);
  }

  function observe(seen) {
    const isPicture = typeof seen === "object";
    $("picture").hidden = !isPicture;
    if (isPicture) {
      $("picture").src = "data:image/webp;base64," + seen.webp;
      $("picture").alt = "The picture that the model saw at step " + step;
    }
    $("observation").replaceChildren(...marked(isPicture ? seen.text : seen));
    $("observation").hidden = isPicture && !seen.text;
  }

  // The call whose reply led to this step is the last one that was made before the step.
  function tell() {
    const calls = trial.calls || [];
    const decided = calls.filter((call) => call.step < Math.max(step, 1));
    const call = decided[decided.length - 1];
    // If the element with the focus is hidden, the player gets the focus, so that keys still work.
    if (!call && $("call").contains(document.activeElement)) player.focus({ preventScroll: true });
    $("call").hidden = !call;
    $("no-call").hidden = Boolean(call);
    $("no-call").textContent = cells[cell].silence;
    if (!call) return;
    $("call-title").textContent = "Reply " + decided.length + " of " + calls.length;
    for (const part of ["reply", "learnings", "reasoning", "asked"]) {
      $("call-" + part).textContent = call[part] || "–";
    }
    $("call-usage").textContent = call.usage || "";
  }

  // -- the address

  function address() {
    const parts = [cells[cell].link, trial.subject, trial.trial, step];
    return "#" + parts.map((part) => encodeURIComponent(part)).join("/");
  }

  let remembering = 0;
  function remember() {
    $("link").href = address();
    clearTimeout(remembering);
    // Browsers refuse too many changes of the address in a short time.
    if (timer === null) remembering = setTimeout(() => {
      if (!placed) return;
      try { history.replaceState(null, "", address()); } catch (error) { /* Frames may not do this. The link still works. */ }
    }, 300);
  }

  // Whether somebody has used the player. Until then, the address of the page is not changed.
  let placed = false;

  function follow() {
    const parts = location.hash.slice(1).split("/");
    if (parts.length < 3) return false;
    let link;
    try { link = decodeURIComponent(parts[0]); } catch (error) { return false; }
    const found = cells.findIndex((entry) => entry.link === link);
    if (found < 0) return false;
    placed = true;
    go(found, Number(parts[1]), Number(parts[2]), Number(parts[3]) || 0).then(() => {
      $("trials").dispatchEvent(new Event("reveal", { bubbles: true }));
      $("trials").scrollIntoView();
      player.focus({ preventScroll: true });
    });
    return true;
  }

  // -- moving

  function pause() {
    if (timer !== null) clearInterval(timer);
    timer = null;
    $("to-play").classList.remove("playing");
    $("to-play").setAttribute("aria-label", "Play");
    $("sentence").setAttribute("aria-live", "polite");
  }

  function play() {
    if (timer !== null) {
      pause();
      remember();
      return;
    }
    if (step === trial.actions.length) show(0);
    $("to-play").classList.add("playing");
    $("to-play").setAttribute("aria-label", "Pause");
    $("sentence").setAttribute("aria-live", "off");
    timer = setInterval(() => {
      if (step < trial.actions.length) show(step + 1);
      if (step === trial.actions.length) {
        pause();
        remember();
      }
    }, 1000 / Number($("speed").value));
  }

  function move(to) {
    pause();
    show(to);
  }

  const KEYS = {
    " ": play,
    k: play,
    ArrowLeft: () => move(step - 1),
    ArrowRight: () => move(step + 1),
    Home: () => move(0),
    End: () => move(trial.actions.length),
    p: () => beside(-1),
    n: () => beside(1),
  };

  player.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !trial || !shelf) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    // Elements that handle a key themselves keep it: lists, elements that space presses, and texts that arrows scroll.
    if (!KEYS[key] || event.target.closest("select")) return;
    if (key === " " && event.target.closest("button, summary, a, input[type=checkbox]")) return;
    if (/^Arrow|Home|End/.test(key) && event.target.matches("pre.text, .screen") && event.target.scrollWidth > event.target.clientWidth) return;
    event.preventDefault();
    placed = true;
    KEYS[key]();
  });
  for (const type of ["click", "input", "change"]) player.addEventListener(type, () => { placed = true; }, true);

  $("to-previous").addEventListener("click", () => beside(-1));
  $("to-back").addEventListener("click", () => move(step - 1));
  $("to-play").addEventListener("click", play);
  $("to-forward").addEventListener("click", () => move(step + 1));
  $("to-next").addEventListener("click", () => beside(1));
  $("scrub").addEventListener("input", () => move(Number($("scrub").value)));
  $("speed").addEventListener("change", () => { if (timer !== null) { pause(); play(); } });
  $("ribbon").addEventListener("click", (event) => { if (event.target.dataset.step) move(Number(event.target.dataset.step)); });
  $("pick").addEventListener("submit", (event) => event.preventDefault());
  $("pick-cell").addEventListener("change", () => go(Number($("pick-cell").value), NaN, NaN, 0));
  $("pick-subject").addEventListener("change", () => choose(pickable.find((one) => String(one.subject) === $("pick-subject").value), 0));
  $("pick-trial").addEventListener("change", () => choose(pickable.find((one) => one.subject === trial.subject && String(one.trial) === $("pick-trial").value), 0));
  $("show-goal").addEventListener("change", above);
  $("only-failed").addEventListener("change", () => {
    offer();
    choose(pickable.includes(trial) ? trial : pickable[0], pickable.includes(trial) ? step : 0);
  });
  window.addEventListener("hashchange", follow);

  fill($("pick-cell"), cells.map((entry, index) => [index, entry.title]), 0);
  player.hidden = false;
  if (!follow()) go(0, NaN, NaN, 0);
})();
