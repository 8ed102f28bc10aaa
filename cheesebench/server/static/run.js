"use strict";
(function () {
  let open = null;
  const drawn = new Map();

  function cell(one) {
    const row = element("tr");
    const name = element("th", one.title);
    name.scope = "row";
    name.append(element("small", one.protocol));
    const verdict = element("td");
    verdict.append(one.decided && one.verdict ? pill(one.verdict) : element("span", one.decided ? "no verdict" : one.done ? "open" : "waiting", "verdict"));
    if (one.decided && one.reason) verdict.append(element("small", one.reason, "why"));
    if (!one.decided && one.standing !== null) verdict.append(element("small", one.standing, "why"));
    const model = element("td", one.model);
    model.append(element("small", one.view));
    const measured = one.measured;
    const range = measured ? measured.interval || "–" : one.interval === null ? "–" : perHundred(one.interval[0]) + "–" + percent(one.interval[1]);
    const watch = element("td");
    const button = element("button", "trials");
    button.type = "button";
    button.disabled = one.done === 0;
    button.setAttribute("aria-label", "Watch trials of " + one.model + " on " + one.title);
    button.addEventListener("click", () => show(one, true));
    watch.append(button);
    const rate = element("td", measured ? measured.mean : percent(one.rate), "n");
    if (one.ability) rate.append(element("small", one.ability));
    row.append(name, model, verdict, rate, element("td", range, "n"), element("td", measured ? measured.reference : percent(one.reference), "n"),
      element("td", whole(one.subjects) + " of " + whole(one.planned), "n"), element("td", whole(one.done) + (one.left ? " + " + whole(one.left) : ""), "n"),
      element("td", one.cost ? money(one.cost) : "–", "n"), watch);
    return row;
  }

  function cells(state) {
    state.cells.forEach((one) => {
      const text = JSON.stringify(one);
      const known = drawn.get(one.number);
      if (known && known.text === text) return;
      const row = cell(one);
      if (known) {
        const focused = known.row.contains(document.activeElement);
        known.row.replaceWith(row);
        if (focused) row.querySelector("button").focus();
      } else byId("cells").append(row);
      drawn.set(one.number, { row, text });
      if (open && open.number === one.number) show(one, false);
    });
    // Running cells come first, then decided cells, and last the cells that have not begun.
    const rank = (one) => (one.decided ? 1 : one.done ? 0 : 2);
    const order = state.cells.slice().sort((a, b) => rank(a) - rank(b) || a.number - b.number).map((one) => drawn.get(one.number).row);
    const body = byId("cells");
    if (order.some((row, place) => body.children[place] !== row) && !body.contains(document.activeElement)) body.append(...order);
  }

  // -- the latest trial, as a film. When the film ends, the film of the trial that is the latest by then begins.

  let latest = null, played = "", busy = false;
  const moving = byId("moving");
  moving.checked = !matchMedia("(prefers-reduced-motion: reduce)").matches;

  // The only arrow of a map from above is the agent. It has the accent colour, as in the player.
  function marked(text) {
    const parts = text.split(/([↑→↓←↖↗↘↙])/u);
    return parts.length === 3 ? [parts[0], element("span", parts[1], "agent"), parts[2]] : [text];
  }

  async function follow() {
    const name = latest && [latest.cell, latest.subject, latest.trial].join("/");
    if (!name || name === played || busy || !moving.checked) return;
    played = name;
    busy = true;
    const response = await fetch("film?cell=" + latest.cell + "&subject=" + latest.subject + "&trial=" + latest.trial).catch(() => null);
    busy = response !== null && response.ok;
    if (!busy) return;
    const film = await response.json();
    byId("film-section").hidden = false;
    say("film-about", film.title + ": " + film.model + ", subject " + film.subject + ", trial " + film.trial);
    let step = 0;
    const timer = setInterval(() => {
      if (moving.checked && step < film.frames.length) byId("film").replaceChildren(...marked(film.frames[step++]));
      else {
        clearInterval(timer);
        busy = false;
        say("film-about", byId("film-about").textContent + (step === film.frames.length ? ": " + film.outcome : ""));
        follow();
      }
    }, 150);
  }
  moving.addEventListener("change", follow);

  // -- the rate of each running cell, trial by trial since this page was opened

  const COLOURS = ["--model", "--control", "--kind-0", "--kind-2", "--kind-4", "--kind-9"];
  const rates = new Map();

  function curve(state) {
    for (const one of state.cells) {
      if (one.rate === null || one.control) continue;
      const known = rates.get(one.number) || [];
      const [before] = known.slice(-1);
      if (!before || before[0] !== one.done) known.push([one.done, one.rate]);
      rates.set(one.number, known);
    }
    const active = state.cells.filter((one) => !one.decided && (rates.get(one.number) || []).length > 1);
    byId("curve-section").hidden = !active.length;
    if (!active.length) return;
    const shown = active.slice(0, COLOURS.length);
    const most = Math.max(...shown.map((one) => one.done));
    const least = Math.min(...shown.map((one) => rates.get(one.number)[0][0]));
    const at = ([done, rate]) => [30 + 360 * (done - least) / (most - least), 140 - 130 * rate].map((value) => value.toFixed(1)).join(",");
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(drawing("line", { x1: 30, x2: 390, y1: 140 - 130 * share, y2: 140 - 130 * share, class: "scale" }));
      parts.push(drawing("text", { x: 26, y: 143 - 130 * share, class: "tick" }, 100 * share + ""));
    }
    shown.forEach((one, place) => {
      const style = "stroke: var(" + COLOURS[place] + ")";
      parts.push(drawing("polyline", { points: rates.get(one.number).map(at).join(" "), class: "line", style: style }));
      if (one.reference !== null) parts.push(drawing("line", { x1: 384, x2: 390, y1: 140 - 130 * one.reference, y2: 140 - 130 * one.reference, class: "mark", style: style }));
    });
    byId("curve").replaceChildren(...parts);
    byId("curve").setAttribute("aria-label", shown.map((one) => one.title + " " + percent(one.rate)).join("; "));
    byId("curve-about").replaceChildren(...shown.map((one, place) => {
      const name = element("span", "● ");
      name.style.color = "var(" + COLOURS[place] + ")";
      const entry = element("span", undefined, "entry");
      entry.append(name, one.title + " (" + one.model + ") " + percent(one.rate) + (one.reference === null ? "" : ", rodent " + percent(one.reference)) + " ");
      return entry;
    }));
  }

  function drawing(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "style") made.style.stroke = value.slice(8);
      else made.setAttribute(key, String(value));
    }
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function models(state) {
    const text = JSON.stringify([state.models, state.status]);
    if (byId("models").dataset.text === text) return;
    byId("models").dataset.text = text;
    byId("models").replaceChildren(...state.models.map((model) => {
      const decided = state.status !== "running";
      const item = element("li", undefined, "gate" + (decided ? " " + model.gate.toLowerCase() : ""));
      item.append(element("strong", model.name), element("span", " in " + model.view, "where"));
      const answer = element("p", undefined, "answer");
      answer.append(decided ? pill(model.gate) : element("span", "going on", "verdict"));
      item.append(answer);
      if (decided) item.append(element("p", model.reason, "aside"));
      return item;
    }));
  }

  async function show(one, move) {
    open = one;
    const response = await fetch("subjects?cell=" + one.number);
    if (!response.ok) return;
    const subjects = await response.json();
    if (open !== one) return;
    byId("subjects").hidden = false;
    say("subjects-title", one.title + ": " + one.model);
    byId("subjects-list").replaceChildren(...subjects.map((subject) => {
      const item = element("li");
      const scored = subject.passed + subject.failed;
      const made = link("", "subject?cell=" + one.number + "&subject=" + subject.subject);
      made.append(element("b", "Subject " + subject.subject), " " + (scored ? "✔ " + subject.passed + " ✘ " + subject.failed : subject.trials + " trials"));
      made.append(element("small", subject.complete ? "complete" : subject.trials + (subject.trials === 1 ? " trial" : " trials") + " so far"));
      item.append(made);
      return item;
    }));
    if (move) byId("subjects-title").focus();
  }

  function replies(state) {
    byId("replies-section").hidden = byId("to-replies").hidden = state.replies.length === 0;
    const text = JSON.stringify(state.replies);
    if (byId("replies").dataset.text === text) return;
    byId("replies").dataset.text = text;
    byId("replies").replaceChildren(...state.replies.map((reply) => {
      const item = element("li");
      item.append(element("p", reply.cell + ", subject " + reply.subject + ", trial " + reply.trial + ", " + reply.seconds + " s", "usage"), element("pre", reply.text || "–", "text"));
      return item;
    }));
  }

  function draw(state) {
    say("status", state.status);
    byId("status").className = "pill " + state.status;
    say("about", state.created.slice(0, 16).replace("T", " ") + " UTC · design " + (state.design || "–"));
    const finished = state.cells.filter((one) => one.finished);
    const counts = ["PASS", "FAIL", "INCONCLUSIVE", "ERROR"].map((verdict) => [finished.filter((one) => one.verdict === verdict).length, verdict]).filter(([count]) => count);
    say("decided", finished.length + " of " + state.cells.length + (counts.length ? ": " + counts.map(([count, verdict]) => count + " " + verdict).join(", ") : ""));
    say("trials", whole(state.done) + " of " + whole(state.done + state.left));
    const running = state.status === "running";
    say("time", duration(state.seconds));
    const most = state.left ? Math.round(state.seconds_left * state.most / state.left) : 0;
    const range = duration(state.seconds_left || 0) + (most > state.seconds_left ? " to " + duration(most) : "");
    say("eta", !running ? "–" : state.seconds_left === null ? "not known yet" : range);
    // If there is neither a price nor a limit, no cost is known.
    const priced = state.cost > 0 || state.max_cost !== null;
    say("cost", !priced ? "–" : money(state.cost) + (state.max_cost === null ? "" : " of " + money(state.max_cost)));
    say("cost-left", !running || !priced ? "–" : state.cost_left === null ? "not known yet" : "about " + roughly(state.cost_left));
    say("calls", whole(state.calls));
    say("tokens", whole(state.tokens));
    // Programs and people make no calls, so these fields are hidden for them.
    for (const id of ["cost", "cost-left", "calls", "tokens", "flight", "unreadable", "faults"]) byId(id).parentElement.hidden = state.calls === 0 && state.in_flight === null;
    say("flight", state.in_flight === null ? "–" : state.in_flight + " of " + state.limit);
    say("unreadable", state.asked ? percent(state.unreadable / state.asked) + " of " + whole(state.asked) : "–");
    say("faults", whole(state.faults));
    latest = state.latest;
    follow();
    say("most", running && state.most > state.left ? "Trials and times are for each cell's present set. At most " + whole(state.most) + " trials are to come." : "");
    byId("bar").max = Math.max(1, state.done + state.left);
    byId("bar").value = state.done;
    document.title = (running && state.left ? Math.floor(100 * state.done / (state.done + state.left)) + " % " : "") + state.run + " – CheeseBench";
    models(state);
    curve(state);
    cells(state);
    replies(state);
    // The numbers that are drawn are also kept in the page, for tests and for curious readers.
    document.body.dataset.state = JSON.stringify(state);
  }

  listen("states", { state: draw });
})();
