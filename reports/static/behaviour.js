"use strict";
// Shows one paradigm at a time: its curves, and below them the paths of all subjects or of one, session by session.
(function () {
  const paradigms = [...document.querySelectorAll(".paradigm")];
  const form = document.getElementById("pick-paradigm");
  if (!form) return;
  const picked = form.querySelector("select");

  function element(name, text, className) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  // -- the paths of the subjects

  // Return the number of the trials that can be drawn here, or -1.
  const numberOf = (place) => trials.index.findIndex((entry, number) => entry.link === place.dataset.link && entry.ground && document.getElementById("trials-" + number).hasChildNodes());

  async function drawMaps(place) {
    if (place.dataset.drawn) return;
    place.dataset.drawn = "yes";
    const number = numberOf(place);
    const entry = trials.index[number];
    const shelf = await trials.unpack(number);
    const played = shelf.trials.filter((one) => one.at);
    if (!played.length) return;
    // In some protocols, no trial can pass or fail.
    const judged = played.some((one) => one.success !== null);
    const subjects = [...new Set(played.map((one) => one.subject))].sort((a, b) => a - b);
    const sessions = [...new Set(played.map((one) => one.session))].sort((a, b) => a - b);
    const pick = element("select");
    pick.autocomplete = "off";
    pick.append(new Option("all subjects: time spent on each square", ""));
    for (const one of subjects) pick.append(new Option("subject " + one + ": its tracks", String(one)));
    const label = element("label", "Where they went ");
    label.append(pick);
    const goal = element("input");
    goal.type = "checkbox";
    goal.autocomplete = "off";
    goal.checked = true;
    const check = element("label", undefined, "check");
    check.append(goal, " goals");
    const bar = element("div", undefined, "pick");
    bar.append(label, check);
    const grid = element("div", undefined, "floors");
    place.append(bar, grid, element("p", maps.caption(entry.ground) + ", whichever way the picture was turned for the model." + (entry.ground.centre ? " Trials are turned back, so that the landmarks are where they are in the room; all subjects together are turned to the first one's goal." : "") + " ● start, ▲ end" + (judged ? "; green: passed, red: failed" : "") + "." + (entry.whole ? "" : (played.some((one) => one.success === false) ? " Failed trials come first on this page, so not" : " Not") + " all trials are in these maps."), "aside"));

    function show() {
      const only = pick.value;
      const scale = Math.max(...sessions.map((session) => Math.max(0, ...heat(played.filter((one) => one.session === session)).values())));
      grid.replaceChildren(...sessions.map((session) => {
        const own = played.filter((one) => one.session === session && (only === "" || String(one.subject) === only));
        const spent = heat(own);
        const where = only === "" ? "together" : "room";
        const idle = own.length && own.every((one) => one.success === null);
        const block = idle ? own[0].block || (judged ? "nothing pays" : "") : "";
        const name = "session " + session + (block && ", " + block);
        const said = name + ", " + own.length + (own.length === 1 ? " trial" : " trials");
        const shades = only === "" ? new Map([...spent].map(([square, share]) => [square, Math.sqrt(share / scale)])) : null;
        const svg = maps.floor(entry.ground, place.dataset.name + ", " + said, shades);
        if (only !== "") for (const one of own) {
          const last = one.at.length / 3 - 1;
          const kind = one.success === null ? "" : one.success ? " passed" : " failed";
          const at = turned(one);
          maps.path(svg, at, last, "track" + kind, one.at);
          maps.dot(svg, at, 0, "start");
          maps.subject(svg, at, last);
        }
        if (goal.checked) {
          const squares = new Map();
          for (const one of own) for (const square of one[where].goals) squares.set(String(square), square);
          maps.goals(svg, squares.values());
        }
        const figure = element("figure");
        figure.append(svg, element("figcaption", name));
        return figure;
      }));
    }
    pick.addEventListener("change", show);
    goal.addEventListener("change", show);
    show();
  }

  // Return the share of these trials' steps for each square.
  function heat(own) {
    const spent = new Map();
    let all = 0;
    for (const one of own) {
      const at = one.together.at, by = at ? 2 : 3, squares = at || one.at;
      for (let n = by; n < squares.length; n += by) {
        const square = squares[n] + "," + squares[n + 1];
        spent.set(square, (spent.get(square) || 0) + 1);
        all += 1;
      }
    }
    for (const [square, steps] of spent) spent.set(square, steps / all);
    return spent;
  }

  // Return column, row and heading of every step of a trial in its room.
  function turned(one) {
    const at = one.room.at;
    if (!at) return one.at;
    return one.at.map((value, n) => (n % 3 === 2 ? value + one.room.turn : at[2 * Math.floor(n / 3) + (n % 3)]));
  }

  // -- one paradigm at a time

  function show() {
    paradigms.forEach((one, number) => { one.hidden = number !== picked.selectedIndex; });
    const shown = paradigms[picked.selectedIndex];
    for (const place of shown.querySelectorAll(".maps")) watch(place);
  }
  // The maps are unpacked and drawn when they come into sight.
  const seen = new IntersectionObserver((found) => found.forEach((one) => {
    if (one.isIntersecting) { seen.unobserve(one.target); drawMaps(one.target); }
  }));
  for (const place of document.querySelectorAll(".maps")) if (numberOf(place) < 0) place.remove();
  const watch = (place) => { if (!place.dataset.drawn) seen.observe(place); };
  paradigms.forEach((one) => picked.append(new Option(one.dataset.title)));
  picked.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = paradigms.length < 2;
  show();
  window.addEventListener("beforeprint", () => { for (const one of paradigms) one.hidden = false; });
  window.addEventListener("afterprint", show);
})();
