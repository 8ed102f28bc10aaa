"use strict";
(function () {
  const rows = new Map();
  const chosen = [];

  function matches(line) {
    const words = byId("filter").value.trim().toLowerCase().split(/\s+/);
    const text = [line.run, ...line.models, line.status, line.design].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function draw(line) {
    const row = element("tr");
    const name = element("th");
    name.scope = "row";
    name.append(link(line.run, "run/" + encodeURIComponent(line.run) + "/"));
    row.append(name);
    if (line.problem) {
      const cell = element("td", line.problem, "problem");
      cell.colSpan = 7;
      row.append(cell);
      return row;
    }
    row.append(element("td", line.created.slice(0, 16).replace("T", " ")), element("td", line.models.join(", ")));
    const status = element("td");
    status.append(element("span", line.status, "pill " + line.status));
    row.append(status);
    row.append(element("td", whole(line.trials) + (line.status === "running" && line.left ? " + " + whole(line.left) : ""), "n"));
    row.append(element("td", line.cost ? money(line.cost) : "–", "n"));
    const verdicts = element("td", undefined, "counts");
    for (const [verdict, count] of Object.entries(line.verdicts)) {
      if (count) verdicts.append(pill(verdict, count + " " + verdict), " ");
    }
    row.append(verdicts);
    const last = element("td");
    const box = element("input");
    box.type = "checkbox";
    box.checked = chosen.includes(line.run);
    box.setAttribute("aria-label", "Compare " + line.run);
    box.addEventListener("change", () => choose(line.run, box.checked));
    last.append(box);
    row.append(last);
    return row;
  }

  function choose(run, on) {
    const at = chosen.indexOf(run);
    if (at >= 0) chosen.splice(at, 1);
    if (on) chosen.push(run);
    if (chosen.length > 2) {
      const dropped = rows.get(chosen.shift());
      if (dropped) dropped.row.querySelector("input").checked = false;
    }
    byId("compare").disabled = chosen.length !== 2;
    say("chosen", chosen.length === 2 ? "Compare " + chosen[0] + " with " + chosen[1] + "." : "Choose two runs to compare.");
  }

  function place(line) {
    const known = rows.get(line.run);
    const row = draw(line);
    row.hidden = !matches(line);
    if (known) {
      const focus = known.row.contains(document.activeElement) ? [...known.row.querySelectorAll("a, input")].indexOf(document.activeElement) : -1;
      known.row.replaceWith(row);
      if (focus >= 0) row.querySelectorAll("a, input")[focus].focus();
    } else {
      // The latest run comes first. Runs that cannot be read have no date, and come last.
      const before = [...rows.values()].find((other) => other.line.created < line.created);
      byId("lines").insertBefore(row, before ? before.row : null);
    }
    rows.set(line.run, { row, line });
    if (!known) {
      const sorted = [...rows.entries()].sort(([, a], [, b]) => (a.line.created < b.line.created ? 1 : a.line.created > b.line.created ? -1 : 0));
      rows.clear();
      for (const [run, value] of sorted) rows.set(run, value);
    }
  }

  function trends() {
    const models = [...new Set([...rows.values()].flatMap(({ line }) => line.models))].sort();
    if (byId("trends").dataset.models === models.join("\n")) return;
    byId("trends").dataset.models = models.join("\n");
    byId("trends").replaceChildren(...models.map((model) => {
      const item = element("li");
      item.append(link(model, "trend?model=" + encodeURIComponent(model)));
      return item;
    }));
  }

  byId("filter").addEventListener("input", () => {
    for (const { row, line } of rows.values()) row.hidden = !matches(line);
  });
  byId("compare").addEventListener("click", () => {
    location.href = "compare?a=" + encodeURIComponent(chosen[0]) + "&b=" + encodeURIComponent(chosen[1]);
  });
  listen("lines", {
    line: place,
    gone: (run) => {
      const known = rows.get(run);
      if (known) known.row.remove();
      rows.delete(run);
      choose(run, false);
    },
    whole: (count) => {
      byId("nothing").hidden = count > 0;
      trends();
    },
  });
})();
