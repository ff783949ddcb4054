// Maps of attention: what is chosen is drawn anew, with its table; a cell says its weight to a pointer and to keys.
const data = JSON.parse(document.getElementById("maps").textContent);
const SVG = "http://www.w3.org/2000/svg";
const roles = ["teacher", "student"];
const view = {};
const worth = new Map([...data.digits].map((digit, place) => [digit, place]));
const readout = document.querySelector(".readout");
const sameTokens = data.teacher.tokens.join("\n") === data.student.tokens.join("\n");
const named = (tokens, place) => `${tokens[place]} (${place + 1})`;

function weightsOf(role, layer, head) {
  const { tokens, heads, weights } = data[role];
  const size = tokens.length ** 2;
  const chosen = head < 0 ? [...Array(heads[layer]).keys()] : [head];
  const mean = new Float64Array(size);
  for (const each of chosen) {
    for (let cell = 0; cell < size; cell += 1) {
      const at = 2 * (each * size + cell);
      mean[cell] += (64 * worth.get(weights[layer][at]) + worth.get(weights[layer][at + 1])) / data.steps / chosen.length;
    }
  }
  return mean;
}

function element(name, attributes, parent) {
  const shape = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => shape.setAttribute(key, value));
  parent.append(shape);
  return shape;
}

function said(role, query, key) {
  const both = sameTokens ? roles : [role];
  const { tokens } = data[role];
  const lines = both.map((each) => `${each}: ${view[each].weights[query * tokens.length + key].toFixed(3)}`);
  return `${named(tokens, query)} attends to ${named(tokens, key)}; ${lines.join("; ")}`;
}

function point(role, query, key) {
  (sameTokens ? roles : [role]).forEach((each) => {
    const { cursor, cell, left, top } = view[each];
    cursor.setAttribute("x", left + key * cell);
    cursor.setAttribute("y", top + query * cell);
    cursor.removeAttribute("visibility");
    Object.assign(view[each], { query, key });
  });
  readout.textContent = said(role, query, key);
}

function frame(role) {
  const { tokens } = data[role];
  const count = tokens.length;
  const cell = Math.min(30, Math.max(16, Math.floor(400 / count)));
  const short = tokens.map((token) => ([...token].length > 14 ? `${[...token].slice(0, 13).join("")}…` : token));
  const room = 12 + 8 * Math.max(...short.map((token) => [...token].length));
  const size = room + count * cell + 2;
  const box = document.querySelector(`[data-role=${role}] .map`);
  const svg = element("svg", { width: size, height: size, viewBox: `0 0 ${size} ${size}`, role: "application", tabindex: 0, "aria-describedby": "keys" }, box);
  const cells = [];
  for (let query = 0; query < count; query += 1) {
    const middle = room + (query + 0.5) * cell;
    element("text", { x: room - 6, y: middle + 4, "text-anchor": "end", "aria-hidden": true }, svg).textContent = short[query];
    element("text", { x: 0, y: 0, transform: `translate(${middle + 4} ${room - 6}) rotate(-90)`, "aria-hidden": true }, svg).textContent = short[query];
    for (let key = 0; key < count; key += 1) {
      cells.push(element("rect", { class: "cell", x: room + key * cell, y: room + query * cell, width: cell, height: cell }, svg));
    }
  }
  element("rect", { class: "frame", x: room, y: room, width: count * cell, height: count * cell }, svg);
  const cursor = element("rect", { class: "cursor", width: cell, height: cell, visibility: "hidden" }, svg);
  view[role] = { svg, cells, cursor, cell, left: room, top: room, query: 0, key: 0, weights: null };
  svg.addEventListener("focus", () => point(role, view[role].query, view[role].key));
  svg.addEventListener("pointerover", (event) => {
    const place = cells.indexOf(event.target);
    if (place >= 0) point(role, Math.floor(place / count), place % count);
  });
  svg.addEventListener("keydown", (event) => {
    const { query, key } = view[role];
    const moves = { ArrowUp: [query - 1, key], ArrowDown: [query + 1, key], ArrowLeft: [query, key - 1], ArrowRight: [query, key + 1], Home: [query, 0], End: [query, count - 1] };
    const next = moves[event.key];
    if (!next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    point(role, ...next.map((place) => Math.min(count - 1, Math.max(0, place))));
    cursor.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

function chosen(role) {
  const part = document.querySelector(`[data-role=${role}]`);
  const [layer, head] = [".layer", ".head"].map((name) => part.querySelector(name));
  return { part, layer, head };
}

function fillHeads(role) {
  const { layer, head } = chosen(role);
  const [before, count] = [head.value, data[role].heads[layer.value]];
  head.replaceChildren(new Option("mean of all", "-1"), ...Array.from({ length: count }, (_, place) => new Option(place + 1, place)));
  head.value = Number(before) < count && before !== "" ? before : "-1";
}

function table(role, title) {
  const { tokens } = data[role];
  const count = tokens.length;
  const whole = document.createElement("table");
  const caption = document.createElement("span");
  caption.textContent = title;
  whole.createCaption().append(caption);
  const cellOf = (row, name, text, scope) => {
    const cell = document.createElement(name);
    cell.textContent = text;
    if (scope) cell.scope = scope;
    else cell.className = "number";
    row.append(cell);
  };
  const head = whole.createTHead().insertRow();
  cellOf(head, "th", "attends to", "col");
  tokens.forEach((_, place) => cellOf(head, "th", named(tokens, place), "col"));
  const body = whole.createTBody();
  tokens.forEach((_, query) => {
    const row = body.insertRow();
    cellOf(row, "th", named(tokens, query), "row");
    for (let key = 0; key < count; key += 1) cellOf(row, "td", view[role].weights[query * count + key].toFixed(3));
  });
  return whole;
}

function draw() {
  roles.forEach((role) => {
    const { layer, head } = chosen(role);
    view[role].weights = weightsOf(role, Number(layer.value), Number(head.value));
  });
  const most = Math.max(...roles.map((role) => view[role].weights.reduce((a, b) => Math.max(a, b), 0)));
  document.querySelector(".scale .most").textContent = most.toFixed(3);
  roles.forEach((role) => {
    const { part, layer, head } = chosen(role);
    const { svg, cells, weights } = view[role];
    const which = head.value === "-1" ? "mean of all heads" : `head ${Number(head.value) + 1}`;
    const title = `${role === "teacher" ? "Teacher" : "Student"}, layer ${Number(layer.value) + 1}, ${which}`;
    svg.setAttribute("aria-label", `${title}: map of attention`);
    cells.forEach((cell, place) => {
      cell.style.fillOpacity = most ? weights[place] / most : 0;
      const count = data[role].tokens.length;
      cell.dataset.tip = said(role, Math.floor(place / count), place % count).replaceAll("; ", "\n");
    });
    part.querySelector(".scroll").replaceChildren(table(role, title));
  });
  const [mine, theirs] = ["student", "teacher"].map((role) => Number(chosen(role).layer.value));
  const match = data.matched[mine];
  const beside = match === theirs + 1 ? "which it is matched with" : `not layer ${match}, which it is matched with`;
  readout.textContent = `Student layer ${mine + 1} beside teacher layer ${theirs + 1}, ${beside} by ${data.matching}.`;
}

roles.forEach((role) => {
  frame(role);
  const { part, layer, head } = chosen(role);
  part.querySelector(".choices").hidden = false;
  data[role].heads.forEach((count, place) => {
    const option = new Option(count ? place + 1 : `${place + 1} (no heads)`, place);
    option.disabled = !count;
    layer.append(option);
  });
  layer.value = data[role].heads.findLastIndex((count) => count);
  fillHeads(role);
  layer.addEventListener("change", () => {
    if (role === "student") follow();
    fillHeads(role);
    draw();
  });
  head.addEventListener("change", () => {
    const other = chosen("teacher").head;
    if (role === "student" && other.options.length === head.options.length) other.value = head.value;
    draw();
  });
});
function follow() {
  const match = data.matched[Number(chosen("student").layer.value)] - 1;
  if (data.teacher.heads[match]) chosen("teacher").layer.value = match;
  fillHeads("teacher");
}
document.querySelector(".scale").hidden = false;
follow();
draw();
