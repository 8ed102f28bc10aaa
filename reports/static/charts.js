"use strict";
// Draws every <canvas data-chart="N"> from number N of the page's chart data, in the colours of its style sheet.
(function () {
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = [];

  // Write a percentage as cheesebench/amounts.py does.
  const rounded = (value) => Math.round(Number((10 * value).toPrecision(12))) / 10;

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue("--" + name).trim();
    return { model: read("model"), band: read("band"), rodent: read("rodent"), animals: read("animals"), control: read("control"), thin: read("thin"), card: read("card"), random: read("random"), kinds: [read("model"), ...[1, 0, 4, 2, 3, 7].map((number) => read("kind-" + number))], grid: read("line"), text: read("soft") };
  }

  function line(label, values, colour, extra) {
    return Object.assign(
      { label: label, data: values, borderColor: colour, backgroundColor: colour, borderWidth: 2, pointRadius: 0, spanGaps: true, fill: false, clip: 6 },
      extra
    );
  }

  // Return the line of a number that holds only for the judged points: it has gaps, and a single point is a dot.
  function judged(name, values, colour, more) {
    const single = values.filter((value) => value !== null).length === 1;
    return line(name, values, colour, Object.assign({ spanGaps: false, pointRadius: single ? 2.5 : 0 }, more));
  }

  function without(chart, c) {
    return judged("without the ability", chart.without, c.random, { borderDash: [2, 4], borderWidth: 1.5 });
  }

  function curve(chart, c) {
    const edge = { borderWidth: 0, backgroundColor: c.band, pointHitRadius: 0 };
    const sets = [
      line("lower bound", chart.low, c.band, edge),
      line("upper bound", chart.high, c.band, Object.assign({}, edge, { fill: "-1" })),
    ];
    if (chart.without.length) sets.push(without(chart, c));
    if (chart.rodent_low.length) {
      const faint = { borderWidth: 0, backgroundColor: c.animals, pointHitRadius: 0 };
      sets.push(line("rodent, lower bound", chart.rodent_low, c.animals, faint));
      sets.push(line("rodent, upper bound", chart.rodent_high, c.animals, Object.assign({}, faint, { fill: "-1" })));
    }
    if (chart.rodent.length) sets.push(line("rodent", chart.rodent, c.rodent, { borderDash: [7, 4], pointRadius: 2, pointStyle: "rect" }));
    else if (chart.reference.length) sets.push(judged("rodent", chart.reference, c.rodent, { borderDash: [7, 4] }));
    sets.push(...thin(chart.subjects, c));
    sets.push(line("model", chart.model, c.model, { pointRadius: chart.labels.length > 30 ? 0 : 2.5 }));
    return lines(chart.labels, sets, c, chart.percent);
  }

  // Lines of single subjects. The word "bound" in their names keeps them out of tooltips and legends.
  const thin = (subjects, c) => subjects.map((own, number) => line("bound " + number, own, c.thin, { borderWidth: 0.8, pointHitRadius: 0 }));

  // A chart of a measure of the trials, in the measure's own unit.
  function took(chart, c) {
    const animals = chart.rodent.length ? [line("rodent", chart.rodent, c.rodent, { borderDash: [7, 4], pointRadius: 2, pointStyle: "rect", spanGaps: false })] : [];
    return lines(chart.labels, [...animals, ...thin(chart.subjects, c), line(chart.name, chart.means, c.model, { pointRadius: 2.5 })], c, false);
  }

  // Each class has the same colour on the whole page.
  const classes = new Map();
  function stacked(chart, c) {
    for (const one of chart.models) if (!classes.has(one.name)) classes.set(one.name, classes.size);
    const sets = chart.models.map((one, at, all, index = classes.get(one.name)) => ({ label: one.name.replaceAll("_", " "), data: one.rates, backgroundColor: c.kinds[index % c.kinds.length] + (index < c.kinds.length ? "" : "88"), borderColor: c.card, borderWidth: 1 }));
    const made = lines(chart.labels, sets, c, true);
    made.type = "bar";
    made.options.scales.x.stacked = made.options.scales.y.stacked = true;
    made.options.legend = true;
    return made;
  }

  // A chart of a measure by condition, in the measure's own unit. Conditions that are names are not joined by a line.
  function conditions(chart, c) {
    return lines(chart.labels, [line(chart.name, chart.means, c.model, { pointRadius: 3.5, showLine: chart.joined })], c, false);
  }

  function pair(chart, c) {
    const sets = [line("plain", chart.plain, c.model, { pointRadius: 2.5 }), line("control", chart.control, c.control, { borderDash: [7, 4], pointRadius: 2.5 })];
    return lines(chart.labels, sets, c, chart.percent);
  }

  // Each of several models has a colour and a dash pattern, so that they can be distinguished without colour.
  const DASHES = [[], [8, 3], [3, 3], [10, 3, 2, 3], [1, 4], [6, 6]];
  function several(chart, c) {
    const sets = chart.models.map((one, index) => line(one.name, one.rates, c.kinds[index % c.kinds.length], { borderDash: DASHES[index % DASHES.length], pointRadius: chart.labels.length > 30 ? 0 : 2.5 }));
    if (chart.kind === "settings") {
      chart.models.forEach((one, index) => {
        const edge = { borderWidth: 0, backgroundColor: c.kinds[index % c.kinds.length] + "22", pointHitRadius: 0 };
        sets.push(line(one.name + ", lower bound", one.low, c.band, edge));
        sets.push(line(one.name + ", upper bound", one.high, c.band, Object.assign({}, edge, { fill: "-1" })));
      });
    } else {
      if (chart.rodent.length) sets.push(line("rodent", chart.rodent, c.rodent, { borderDash: [7, 4], borderWidth: 1.5, pointRadius: 2, pointStyle: "rect" }));
      else if (chart.reference.length) sets.push(judged("rodent", chart.reference, c.rodent, { borderDash: [7, 4], borderWidth: 1.5 }));
      if (chart.without.length) sets.push(without(chart, c));
    }
    const made = lines(chart.labels, sets, c, inPercent(chart));
    made.options.legend = true;
    // A line of the legend holds about forty letters. The legend's lines are added to the height, so that the drawing keeps its size.
    made.legendLines = Math.ceil(sets.reduce((sum, one) => sum + (one.label.includes("bound") ? 0 : one.label.length + 7), 0) / 40);
    return made;
  }

  // Chart.js would draw all lines of a legend solid.
  function dashed(chart) {
    const dash = (item) => chart.data.datasets[item.datasetIndex].borderDash || [];
    return Chart.defaults.plugins.legend.labels.generateLabels(chart).map((item) => Object.assign(item, { lineDash: dash(item), lineWidth: 2 }));
  }

  // Without percent, the axis has the unit of a measure.
  const inPercent = (chart) => !["conditions", "took"].includes(chart.kind) && chart.percent !== false;
  function lines(labels, sets, c, percent) {
    const grid = { grid: { color: c.grid }, border: { display: false } };
    const y = percent ? { min: 0, max: 100, ticks: { color: c.text, stepSize: 25 } } : { beginAtZero: true, ticks: { color: c.text, maxTicksLimit: 6 } };
    return {
      type: "line",
      data: { labels: labels, datasets: sets },
      options: {
        interaction: { mode: "index", intersect: false },
        scales: {
          x: { grid: { display: false }, border: { color: c.grid }, ticks: { color: c.text, maxRotation: 0, autoSkipPadding: 12 } },
          y: Object.assign(y, grid),
        },
      },
    };
  }

  function profile(chart, c) {
    const isRadar = chart.kind === "radar";
    const sets = [
      line("model", chart.model, c.model, { backgroundColor: isRadar ? c.band : c.model, fill: isRadar, pointRadius: 3 }),
      line("rodent", chart.rodent, c.rodent, { borderDash: [7, 4], pointRadius: 2, pointStyle: "rect" }),
    ].filter((set) => set.data.some((rate) => rate !== null)); // no animal answers questions
    const ticks = { color: c.text, stepSize: 25, backdropColor: "transparent", showLabelBackdrop: false };
    const scales = isRadar
      ? { r: { min: 0, max: 100, grid: { color: c.grid }, angleLines: { color: c.grid }, ticks: ticks, pointLabels: { color: c.text, callback: broken, font: { size: 12 } } } }
      : { x: { ticks: { color: c.text }, grid: { display: false } }, y: { min: 0, max: 100, ticks: ticks, grid: { color: c.grid } } };
    return { type: isRadar ? "radar" : "bar", data: { labels: chart.labels, datasets: sets }, options: { scales: scales, legend: true } };
  }

  // A label of several words is broken into lines, so that the drawing keeps its size.
  function broken(label) {
    const words = label.split(" ");
    return words.length < 3 ? words : [words.slice(0, -1).join(" "), words[words.length - 1]];
  }

  function draw(sharp) {
    for (const chart of drawn.splice(0)) chart.destroy();
    const c = colours();
    for (const canvas of document.querySelectorAll("canvas[data-chart]")) {
      // A chart is drawn when it comes into sight, because a page may have hundreds of them.
      if (!sharp && !inSight.has(canvas)) continue;
      const chart = data[Number(canvas.dataset.chart)];
      const settings = chart.kind === "curve" ? curve(chart, c) : chart.kind === "pair" ? pair(chart, c) : chart.kind === "conditions" ? conditions(chart, c) : chart.kind === "took" ? took(chart, c) : chart.kind === "stacked" ? stacked(chart, c) : chart.models ? several(chart, c) : profile(chart, c);
      const shown = (item) => !String(item.text === undefined ? item.dataset.label : item.text).includes("bound");
      settings.options = Object.assign(settings.options, {
        animation: false,
        devicePixelRatio: sharp === true ? 3 : undefined,
        responsive: true,
        maintainAspectRatio: false,
        layout: { padding: 6 },
        plugins: {
          legend: { display: Boolean(settings.options.legend), position: "bottom", labels: Object.assign({ color: c.text, usePointStyle: true, filter: shown }, chart.models && chart.kind !== "stacked" && { pointStyle: "line", pointStyleWidth: 30, generateLabels: dashed }) },
          tooltip: { filter: (item) => !item.dataset.label.includes("bound"), callbacks: { label: (item) => item.dataset.label + " " + (inPercent(chart) ? rounded(item.parsed[chart.kind === "radar" ? "r" : "y"]) + " %" : Number(item.parsed.y.toPrecision(3))) } },
        },
      });
      if (settings.legendLines) canvas.parentElement.style.height = 11.5 + 1.4 * settings.legendLines + "rem";
      drawn.push(new Chart(canvas, settings));
    }
  }

  const inSight = new Set();
  const seen = new IntersectionObserver((found) => {
    const fresh = found.filter((one) => one.isIntersecting);
    fresh.forEach((one) => { seen.unobserve(one.target); inSight.add(one.target); });
    if (fresh.length) draw("print" in document.documentElement.dataset);
  }, { rootMargin: "300px" });
  document.querySelectorAll("canvas[data-chart]").forEach((canvas) => seen.observe(canvas));
  dark.addEventListener("change", draw);
  // For paper, charts are drawn on white, and with a higher resolution than on a screen.
  window.addEventListener("beforeprint", () => { document.documentElement.dataset.print = ""; draw(true); });
  window.addEventListener("afterprint", () => { delete document.documentElement.dataset.print; draw(); });
})();
