"use strict";
// The trials of a page, unpacked on first use, and drawings of arenas from above. The player and the tracks use both.
const trials = (function () {
  const unpacked = new Map();
  return {
    index: JSON.parse(document.getElementById("trial-index").textContent),
    // Return the trials of cell `number`, with their observations.
    unpack(number) {
      if (!unpacked.has(number)) {
        const packed = atob(document.getElementById("trials-" + number).textContent);
        const bytes = Uint8Array.from(packed, (glyph) => glyph.charCodeAt(0));
        const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
        unpacked.set(number, new Response(stream).json());
      }
      return unpacked.get(number);
    },
  };
})();

const maps = (function () {
  const SVG = "http://www.w3.org/2000/svg";

  function add(parent, name, attributes, className) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
    if (className) made.setAttribute("class", className);
    parent.append(made);
    return made;
  }

  // One square is one unit; the middle of column x, row y is at (x + .5, y + .5). Heat: "x,y" -> 0 to 1.
  // `turn`: by how many degrees the landmarks have gone round.
  function floor(ground, label, heat, turn = 0) {
    const wide = ground.rows[0].length, high = ground.rows.length;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", [ground.left, ground.top, wide, high].join(" "));
    svg.setAttribute("class", "floor");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    ground.rows.forEach((row, down) => [...row].forEach((kind, across) => {
      if (kind === "v" || kind === "l") return;
      const x = ground.left + across, y = ground.top + down;
      const square = add(svg, "rect", { x: x, y: y, width: 1.02, height: 1.02 }, "square-" + kind);
      const share = heat && heat.get(x + "," + y);
      if (share) { add(svg, "rect", { x: x, y: y, width: 1.02, height: 1.02, "fill-opacity": share }, "heat"); square.remove(); }
    }));
    for (const [x, y] of ground.holes) add(svg, "circle", { cx: x + 0.5, cy: y + 0.5, r: 0.34 }, "hole");
    for (const [x, y, glyph] of ground.signs) add(svg, "text", { x: x + 0.5, y: y + 0.68 }, "sign").textContent = glyph;
    for (const [column, row, glyph] of ground.marks) {
      const [x, y] = ground.centre ? gone(ground.centre, column, row, turn) : [column, row];
      add(svg, "rect", { x: x, y: y, width: 1, height: 1 }, "mark");
      add(svg, "text", { x: x + 0.5, y: y + 0.82 }).textContent = glyph;
    }
    return svg;
  }

  function gone([middle, height], x, y, turn) {
    const way = (turn * Math.PI) / 180, across = x - middle, down = y - height;
    return [middle + across * Math.cos(way) - down * Math.sin(way), height + across * Math.sin(way) + down * Math.cos(way)];
  }

  // Squares that were turned may be further apart than the ones that were walked, `from`.
  function path(svg, at, steps, className, from = at) {
    let points = "";
    for (let n = 0; n <= steps; n++) {
      const [x, y] = at.slice(3 * n);
      const [nx, ny] = from.slice(3 * n), [px, py] = from.slice(Math.max(0, 3 * n - 3));
      // If the subject was moved to another place, no line is drawn.
      const walked = n && Math.abs(nx - px) < 2 && Math.abs(ny - py) < 2;
      points += (walked ? "L" : "M") + (x + 0.5) + " " + (y + 0.5);
    }
    add(svg, "path", { d: points }, className);
  }

  function dot(svg, at, step, className) {
    add(svg, "circle", { cx: at[3 * step] + 0.5, cy: at[3 * step + 1] + 0.5, r: 0.28 }, className);
  }

  function subject(svg, at, step) {
    const [x, y, heading] = at.slice(3 * step, 3 * step + 3);
    add(svg, "path", { d: "M0 -.48L.36 .38L0 .2L-.36 .38Z", transform: "translate(" + (x + 0.5) + " " + (y + 0.5) + ") rotate(" + heading + ")" }, "subject");
  }

  function goals(svg, squares) {
    for (const [x, y] of squares) add(svg, "rect", { x: x + 0.08, y: y + 0.08, width: 0.84, height: 0.84, rx: 0.2 }, "goal");
  }

  // Return the goals of a trial at a step.
  function goalsAt(trial, step) {
    let found = [];
    for (const [from, squares] of trial.goals) if (from <= step) found = squares;
    return found;
  }

  // Return the caption for the drawing of an arena.
  const caption = (ground) => "From above" + (ground.marks.length ? ", with its landmarks" : "");

  return { caption, floor, path, dot, subject, goals, goalsAt };
})();
