"use strict";
// Names are written as text, never as markup.
const data = JSON.parse(document.getElementById("content").textContent);
const page = document.getElementById("page");

// Elements

function element(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}
function shape(name, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}
function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "colour") made.style.setProperty("--c", value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  for (const child of children) made.append(child);
  return made;
}
function section(id, title, ...children) {
  const made = element("section", { id, "aria-labelledby": id + "-title" }, element("h2", { id: id + "-title" }, title), ...children);
  page.append(made);
  return made;
}
function option(value, text) { return element("option", { value }, text); }

// Numbers

function number(value, digits = 4) {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e6 || size < 1e-3)) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}
function signed(value, decimals = 1) { return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(decimals); }
function percent(weight) { return number(100 * weight, 3) + " %"; }
function rows(count) { return String(count).replace(/\B(?=(\d{3})+$)/g, ","); }
function ticks(low, high, most = 5) {
  const rough = (high - low) / most;
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high && found.length < 20; i++) found.push(i * step);
  return found;
}

// Clusters and their colours

const HUES = [211, 28, 140, 322, 48, 265, 0, 185];
const colour = (place) => {
  const cluster = data.clusters[place];
  if (!cluster || cluster.name === null) return "var(--outlier)";
  const hue = place < HUES.length ? HUES[place] : (place * 137.508) % 360;
  return `hsl(${hue.toFixed(0)} 75% var(--light))`;
};
const called = (place) => (data.clusters[place].name === null ? "outliers" : "cluster " + data.clusters[place].name);
const members = (place) => data.components.filter((component) => component.cluster === place);
/** The clusters that are highlighted; all if none is. */
const chosen = new Set();
const isDim = (place) => chosen.size > 0 && !chosen.has(place);

// A single cluster differs from the whole in nothing.
const state = { groups: data.clusters.length > 1 ? "clusters" : "components", order: "file", x: 0, y: Math.min(1, data.columns.length - 1), cell: [0, 0] };
const redraws = [];
/** The width of pictures in pixels, so that their letters have the size of the page's. */
const width = () => Math.max(300, Math.min(760, page.clientWidth));
const redraw = () => redraws.forEach((draw) => draw());

// The head

page.append(element("h1", {}, data.heading));
const nav = element("nav", { "aria-label": "Sections" });
const facts = element("dl");
for (const [what, value] of data.facts) facts.append(element("dt", {}, what), element("dd", {}, value));
page.append(nav, facts);

// Findings

if (data.findings.length > 0) {
  const list = element("ul", { class: "findings" });
  for (const finding of data.findings) list.append(element("li", {}, finding));
  section("findings", "Findings", list);
}

// Clusters

{
  const list = element("ul", { class: "clusters" });
  data.clusters.forEach((cluster, place) => {
    const count = members(place).length;
    const bar = element("i");
    bar.style.width = Math.max(0.5, 100 * cluster.weight) + "%";
    const button = element("button", { type: "button", "aria-pressed": "false", "data-cluster": place, colour: colour(place) },
      element("span", { class: "swatch", "aria-hidden": "true" }), element("span", {}, called(place)),
      element("span", {}, percent(cluster.weight)),
      element("span", { class: "track", "aria-hidden": "true" }, bar));
    button.title = count + (count === 1 ? " component: " : " components: ") + members(place).map((c) => c.identifier).join(", ");
    button.addEventListener("click", () => {
      if (!chosen.delete(place)) chosen.add(place);
      redraw();
    });
    redraws.push(() => button.setAttribute("aria-pressed", String(chosen.has(place))));
    list.append(element("li", {}, button));
  });
  const all = element("button", { type: "button", id: "all" }, "Show all");
  all.addEventListener("click", () => { chosen.clear(); redraw(); });
  redraws.push(() => { all.disabled = chosen.size === 0; });
  section("clusters", "Clusters", element("p", { class: "quiet" }, "The share of the rows of each. Press one or several to highlight them on the whole page."),
    list, element("div", { class: "bar" }, all));
}

// Profiles

{
  const groups = () => (state.groups === "clusters" ? data.clusters : data.components);
  const clusterOf = (place) => (state.groups === "clusters" ? place : data.components[place].cluster);
  const label = (place) => (state.groups === "clusters" ? called(place) : "component " + data.components[place].identifier);
  const short = (place) => (state.groups === "clusters" ? (data.clusters[place].name ?? "out") : data.components[place].identifier);
  const order = () => {
    const all = data.columns.map((_, column) => column);
    if (state.order === "file") return all;
    const spread = (column) => {
      const means = data.clusters.filter((cluster) => cluster.name !== null).map((cluster) => cluster.mean[column]);
      return Math.max(...means) - Math.min(...means);
    };
    return all.sort((a, b) => spread(b) - spread(a));
  };
  const what = element("select", { id: "groups" }, option("clusters", `clusters (${data.clusters.length})`), option("components", `components (${data.components.length})`));
  what.value = state.groups;
  const sorting = element("select", { id: "order" }, option("file", "as in the data"), option("difference", "largest difference first"));
  const table = element("table", { id: "profile" });
  const area = element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Profiles; arrow keys move between cells", "aria-describedby": "readout" }, table);
  const readout = element("p", { id: "readout", "aria-live": "polite" });
  // The strongest colour is that of the largest difference, up to three standard deviations.
  const largest = groups().flatMap((group) => group.mean).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const scale = Math.max(0.5, Math.min(3, largest));
  let cells = [];
  const tell = () => {
    const [line, place] = state.cell;
    const column = order()[line], group = groups()[place], { name, mean, unit } = data.columns[column];
    readout.textContent = `${name} in ${label(place)}: ${number(mean + unit * group.mean[column])} ± ${number(unit * group.spread[column])}, ` +
      `${signed(group.mean[column], 2)} standard deviations from the mean of all rows, ${number(mean)} ± ${number(unit)}`;
    cells.forEach((line) => line.forEach((cell) => cell.classList.remove("active")));
    cells[line][place].classList.add("active");
  };
  const move = (line, place) => {
    state.cell = [Math.max(0, Math.min(cells.length - 1, line)), Math.max(0, Math.min(groups().length - 1, place))];
    tell();
    cells[state.cell[0]][state.cell[1]].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  area.addEventListener("keydown", (event) => {
    if (event.target !== area) return;
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!step) return;
    event.preventDefault();
    move(state.cell[0] + step[0], state.cell[1] + step[1]);
  });
  const build = () => {
    const wide = groups().length > 16;
    table.className = wide ? "many" : "";
    const head = element("tr", {}, element("th", { scope: "col" }, "column"));
    groups().forEach((_, place) => head.append(element("th", { scope: "col", title: label(place), "data-place": place }, String(short(place)))));
    const body = element("tbody");
    cells = order().map((column, line) => {
      const name = data.columns[column].name;
      const axis = (which) => {
        const button = element("button", { type: "button", "aria-label": `${which} axis: ${name}`, "data-axis": which, "data-column": column }, which);
        button.addEventListener("click", () => { state[which] = column; redraw(); });
        return button;
      };
      const row = element("tr", {}, element("th", { scope: "row" }, element("div", {}, element("span", { title: name }, name), axis("x"), axis("y"))));
      const made = groups().map((group, place) => {
        const value = group.mean[column], far = Math.min(1, Math.abs(value) / scale);
        const cell = element("td", { class: far > 0.55 ? "strong" : null, title: `${name}, ${label(place)}: ${signed(value, 2)}` }, wide ? "" : signed(value));
        cell.style.setProperty("--far", far.toFixed(3));
        cell.style.setProperty("--hue", `var(--${value < 0 ? "low" : "high"})`);
        cell.addEventListener("click", () => move(line, place));
        row.append(cell);
        return cell;
      });
      body.append(row);
      return made;
    });
    table.replaceChildren(element("thead", {}, head), body);
    move(0, 0);
  };
  what.addEventListener("change", () => { state.groups = what.value; build(); redraw(); });
  sorting.addEventListener("change", () => { state.order = sorting.value; build(); redraw(); });
  redraws.push(() => {
    cells.forEach((line) => line.forEach((cell, place) => cell.classList.toggle("dim", isDim(clusterOf(place)))));
    table.querySelectorAll("thead th[data-place]").forEach((head) => head.classList.toggle("dim", isDim(clusterOf(Number(head.dataset.place)))));
    table.querySelectorAll("button[data-axis]").forEach((button) =>
      button.setAttribute("aria-pressed", String(state[button.dataset.axis] === Number(button.dataset.column))));
  });
  const made = section("profiles", "Profiles",
    element("p", { class: "quiet" }, "The mean of each column, in standard deviations from the mean of all rows: orange is above, blue is below. x and y choose the columns of the pair plot."),
    element("div", { class: "bar" }, element("label", {}, "Show", what), element("label", {}, "Columns", sorting)), area, readout);
  if (data.columns_left_out > 0) made.append(element("p", { class: "quiet" }, `${data.columns_left_out} columns in which the clusters differ least are left out.`));
  if (data.components_left_out > 0) made.append(element("p", { class: "quiet" }, `The ${data.components_left_out} lightest components are left out.`));
  build();
}

// The pair plot

const correlations = new Int16Array(Uint8Array.from(atob(data.correlations), (byte) => byte.charCodeAt(0)).buffer);
function correlation(component, a, b) {
  if (a === b) return 1;
  const d = data.columns.length, [low, high] = a < b ? [a, b] : [b, a];
  return correlations[component * (d * (d - 1)) / 2 + (high * (high - 1)) / 2 + low] / 32767;
}
function ellipse(component, x, y, across, down) {
  const { mean, spread } = data.components[component];
  const r = correlation(component, x, y), s = Math.sqrt(Math.max(0, 1 - r * r));
  const points = [];
  for (let i = 0; i <= 64; i++) {
    const angle = (i / 64) * 2 * Math.PI, c = 2 * Math.cos(angle), e = 2 * Math.sin(angle);
    points.push(across(mean[x] + spread[x] * c).toFixed(1) + "," + down(mean[y] + spread[y] * (r * c + s * e)).toFixed(1));
  }
  return points.join(" ");
}
{
  const L = 74, B = 52, T = 14, R = 14;
  const pick = (which) => {
    const select = element("select", { id: "axis-" + which }, ...data.columns.map((column, place) => option(place, column.name)));
    select.addEventListener("change", () => { state[which] = Number(select.value); redraw(); });
    redraws.push(() => { select.value = String(state[which]); });
    return select;
  };
  const swap = element("button", { type: "button", id: "swap" }, "Swap");
  swap.addEventListener("click", () => { [state.x, state.y] = [state.y, state.x]; redraw(); });
  const svg = shape("svg", { id: "pair", role: "img" });
  const range = (column) => {
    const values = data.rows.map((row) => row[column]).filter((value) => value !== null);
    for (const { mean, spread, weight } of data.components) {
      if (weight > 0.002 || values.length === 0) values.push(mean[column] - 2 * spread[column], mean[column] + 2 * spread[column]);
    }
    const low = values.reduce((a, b) => Math.min(a, b), Infinity), high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const margin = 0.04 * (high - low) || 1;
    return [low - margin, high + margin];
  };
  redraws.push(() => {
    const W = width(), H = Math.round(Math.min(520, 0.95 * W));
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    const { x, y } = state, [x0, x1] = range(x), [y0, y1] = range(y), [cx, cy] = [data.columns[x], data.columns[y]];
    const across = (value) => L + ((value - x0) / (x1 - x0)) * (W - L - R);
    const down = (value) => H - B - ((value - y0) / (y1 - y0)) * (H - B - T);
    svg.setAttribute("aria-label", `Pair plot of ${cx.name} and ${cy.name}: ${data.rows.length} rows, and the 2σ ellipses of ${data.components.length} components`);
    const clip = shape("clipPath", { id: "inside" }, shape("rect", { x: L, y: T, width: W - L - R, height: H - B - T }));
    const marks = shape("g", { "clip-path": "url(#inside)" }), axes = shape("g", {});
    for (const tick of ticks(cx.mean + cx.unit * x0, cx.mean + cx.unit * x1)) {
      const at = across((tick - cx.mean) / cx.unit);
      axes.append(shape("line", { class: "axis", x1: at, x2: at, y1: T, y2: H - B }), shape("text", { x: at, y: H - B + 18, "text-anchor": "middle" }, number(tick, 6)));
    }
    for (const tick of ticks(cy.mean + cy.unit * y0, cy.mean + cy.unit * y1)) {
      const at = down((tick - cy.mean) / cy.unit);
      axes.append(shape("line", { class: "axis", x1: L, x2: W - R, y1: at, y2: at }), shape("text", { x: L - 6, y: at + 4, "text-anchor": "end" }, number(tick, 6)));
    }
    const cut = (name) => (name.length > 40 ? name.slice(0, 39) + "…" : name);
    axes.append(shape("text", { class: "name", x: (L + W - R) / 2, y: H - 12, "text-anchor": "middle" }, cut(cx.name)),
      shape("text", { class: "name", x: 0, y: 0, transform: `translate(16 ${(T + H - B) / 2}) rotate(-90)`, "text-anchor": "middle" }, cut(cy.name)));
    data.rows.forEach((row, i) => {
      if (row[x] === null || row[y] === null) return;
      const place = data.row_clusters[i];
      marks.append(shape("circle", { class: isDim(place) ? "row dim" : "row", cx: across(row[x]).toFixed(1), cy: down(row[y]).toFixed(1), r: 2.6, colour: colour(place) }));
    });
    data.components.forEach((component, j) => {
      const dim = isDim(component.cluster);
      marks.append(shape("polygon", { class: dim ? "ellipse dim" : "ellipse", points: ellipse(j, x, y, across, down), colour: colour(component.cluster) },
        shape("title", {}, `component ${component.identifier}, ${called(component.cluster)}, ${percent(component.weight)}`)));
    });
    if (data.components.length <= 20 || chosen.size > 0) {
      data.components.forEach((component) => {
        if (chosen.size > 0 && isDim(component.cluster)) return;
        marks.append(shape("text", { class: "name", x: across(component.mean[x]).toFixed(1), y: (down(component.mean[y]) + 4).toFixed(1), "text-anchor": "middle" },
          String(component.identifier)));
      });
    }
    svg.setAttribute("class", data.components.length > 10 ? "crowded" : "");
    svg.replaceChildren(clip, axes, marks);
  });
  const sample = data.rows.length === 0 ? "The model file has no rows to draw; the ellipses are those of the components (2σ)."
    : `${rows(data.rows.length)} of ${rows(data.rows_in_all)} rows, in the colour of their cluster, and the ellipses of the components (2σ).`;
  section("pairs", "Two columns", element("p", { class: "quiet" }, sample),
    element("div", { class: "bar" }, element("label", {}, "x", pick("x")), element("label", {}, "y", pick("y")), swap), svg);
}

// The course of the score, and the score against K

/** A picture that is drawn again when the page's width changes. */
function chart(id, label, points, options) {
  const svg = shape("svg", { id, role: "img", "aria-label": label });
  redraws.push(() => drawChart(svg, points, options));
  return svg;
}
function drawChart(svg, points, { marks = [], errors = [], ring = null, whole = false, title }) {
  const W = width(), H = 280, L = 74, B = 46, T = 14, R = 16;
  const xs = points.map((point) => point[0]).concat(marks.map((mark) => mark.at));
  const ys = points.flatMap((point, i) => [point[1] - (errors[i] || 0), point[1] + (errors[i] || 0)]);
  let [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (!whole && points.length > 1) x0 = Math.max(0, x0 - (points[1][0] - points[0][0]));
  const extra = 0.06 * (y1 - y0) || 0.5, aside = whole ? 0.3 : 0;
  [x0, x1, y0, y1] = [x0 - aside, x1 + aside || 1, y0 - extra, y1 + extra];
  const across = (value) => L + ((value - x0) / (x1 - x0)) * (W - L - R);
  const down = (value) => H - B - ((value - y0) / (y1 - y0)) * (H - B - T);
  svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
  svg.replaceChildren();
  for (const tick of ticks(x0, x1, W / 110).filter((tick) => !whole || Number.isInteger(tick))) {
    svg.append(shape("line", { class: "axis", x1: across(tick), x2: across(tick), y1: T, y2: H - B }),
      shape("text", { x: across(tick), y: H - B + 18, "text-anchor": "middle" }, tick >= 1e6 ? number(tick, 3) : rows(tick)));
  }
  for (const tick of ticks(y0, y1)) {
    svg.append(shape("line", { class: "axis", x1: L, x2: W - R, y1: down(tick), y2: down(tick) }), shape("text", { x: L - 6, y: down(tick) + 4, "text-anchor": "end" }, number(tick, 6)));
  }
  svg.append(shape("text", { class: "name", x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle" }, title));
  for (const { at, kind, text } of marks) {
    svg.append(shape("line", { class: kind, x1: across(at), x2: across(at), y1: T, y2: H - B }, shape("title", {}, text)));
  }
  svg.append(shape("polyline", { class: "line", points: points.map(([x, y]) => across(x).toFixed(1) + "," + down(y).toFixed(1)).join(" ") }));
  points.forEach(([x, y], i) => {
    if (errors[i]) svg.append(shape("line", { class: "error", x1: across(x), x2: across(x), y1: down(y - errors[i]), y2: down(y + errors[i]) }));
    svg.append(shape("circle", { class: "point", cx: across(x), cy: down(y), r: 3 }, shape("title", {}, `${rows(x)}: ${number(y, 6)}`)));
    if (x === ring) svg.append(shape("circle", { class: "chosen", cx: across(x), cy: down(y), r: 7 }));
  });
}
function table(head, lines) {
  const made = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", { scope: "col" }, cell)))));
  made.append(element("tbody", {}, ...lines.map((line) => element("tr", {}, ...line.map((cell) => element("td", {}, cell))))));
  return element("details", {}, element("summary", {}, "As a table"), element("div", { class: "scroll", tabindex: "0" }, made));
}
{
  const { points, revisions, alarms } = data.course;
  const words = (reason) => String(reason).replaceAll("_", " ");
  const told = revisions.map((one) => `after ${rows(one.rows)} rows: ${words(one.reason)}, ${one.moves} ${one.moves === 1 ? "move" : "moves"}` +
    (one.gain === null ? "" : `, ${signed(one.gain, 3)} on validation rows`));
  const changed = alarms.map((one) => `the data change about row ${rows(one.row)}` + (one.kind === null ? "" : ` (${words(one.kind)})`));
  if (points.length > 1 || revisions.length > 0 || alarms.length > 0) {
    const made = section("course", "The course of the score");
    if (points.length > 1) {
      const marks = revisions.map((one, i) => ({ at: one.rows, kind: "revision", text: "revision " + told[i] }))
        .concat(alarms.map((one, i) => ({ at: one.row, kind: "alarm", text: changed[i] })));
      made.append(element("p", { class: "quiet" }, "Mean log-density of rows before they were learned, against the rows seen. Scores near the beginning are those of fewer rows."),
        chart("score", "Prequential score against rows seen", points, { marks, title: "rows seen" }));
    }
    const keys = element("p", { class: "quiet" });
    if (revisions.length > 0) keys.append(element("span", { class: "key revision" }), "revision that changed the mixture  ");
    if (alarms.length > 0) keys.append(element("span", { class: "key alarm" }), "the data change");
    made.append(keys);
    if (told.length + alarms.length > 0) {
      const list = element("ul", {}, ...told.map((text) => element("li", {}, "Revision " + text)), ...changed.map((text) => element("li", {}, text)));
      made.append(element("details", {}, element("summary", {}, "Revisions and changes"), list));
    }
    if (points.length > 1) made.append(table(["rows seen", "score"], points.map(([x, y]) => [rows(x), number(y, 6)])));
  }
  if (data.by_k.length > 1) {
    const made = data.by_k.map((one) => [one.k, one.score]);
    section("by-k", "The score against K",
      element("p", { class: "quiet" }, "The ring marks the K that is shown. Bars: ±1 standard error of the difference to the best."),
      chart("scores-of-k", "Score against the number of components", made, { errors: data.by_k.map((one) => one.error), ring: data.k, whole: true, title: "K" }),
      table(["K", "score", "standard error of the difference"], data.by_k.map((one) => [String(one.k), number(one.score, 7), one.error === null ? "" : number(one.error, 3)])));
  }
}

let drawn = width();
window.addEventListener("resize", () => {
  if (width() !== drawn) { drawn = width(); redraw(); }
});
for (const made of page.querySelectorAll("section")) nav.append(element("a", { href: "#" + made.id }, made.querySelector("h2").textContent));
redraw();
