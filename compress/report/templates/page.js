
// A reader on paper sees all; what was closed closes again.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")];
  closed.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));

// Commands: a page from a file has no clipboard in every browser, but its selection can be copied.
async function copied(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}
document.querySelectorAll("button.copy").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = (await copied(button.parentElement.querySelector("code"))) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
});

// Labels of marks at once, on touch too; without this script they are the titles that a browser shows after a while.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);
document.querySelectorAll(".chart title").forEach((title) => {
  title.parentElement.dataset.tip = title.textContent.replaceAll("; ", "\n");
  title.remove();
});
addEventListener("pointerover", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const place = mark.getBoundingClientRect();
  const left = Math.min(place.right + 8, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left) + scrollX}px`;
  tip.style.top = `${place.bottom + 8 + scrollY}px`;
});

// Recipes of a figure's charts come and go with their boxes; the front and the legend's words stay. All begin shown: a browser that
// reloads a page may keep a box as it was left.
document.querySelectorAll("fieldset.legend").forEach((legend) => {
  legend.hidden = false;
  legend.querySelectorAll("input").forEach((box) => { box.checked = true; });
  legend.addEventListener("change", ({ target }) => {
    const drawn = `.chart :is([fill="${target.value}"], [stroke="${target.value}"])`;
    legend.parentElement.querySelectorAll(drawn).forEach((mark) => { mark.style.visibility = target.checked ? "" : "hidden"; });
  });
});

// Tables of three rows and more: a heading sorts them upwards, then downwards, then as they came; more than seven can be filtered by words.
const shown = (cell) => (cell.firstChild?.textContent ?? "").trim();
// Returns what a cell is compared by, or null if it is empty: the words and numbers of a text in turn; the seconds of a duration; the units
// and numbers of other cells, since core-hours and GPU-hours are not comparable.
const SECONDS = { h: 3600, min: 60, s: 1 };
const VALUES = { none: 0, exact: Infinity };
const BEYOND = { "<": -1e-9, ">": 1e-9 };
function parts(text, numeric) {
  if (!text || text.startsWith("–")) return null;
  const plain = text.replace(/(\d),(?=\d{3})/g, "$1").replaceAll("−", "-");
  if (!numeric) return plain.split(/(\d+(?:\.\d+)?)/).map((part, i) => (i % 2 ? Number(part) : part));
  if (plain in VALUES) return ["", VALUES[plain]];
  const times = [...plain.matchAll(/([\d.]+) (h|min|s)\b/g)];
  if (times.length) return ["", times.reduce((sum, [, count, unit]) => sum + count * SECONDS[unit], 0)];
  const unit = (plain.match(/\w+-h\b/g) ?? []).join(" ");
  const numbers = [...plain.matchAll(/([<>]?) ?([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/g)];
  return numbers.length ? [unit, ...numbers.map(([, bound, digits]) => Number(digits) + (BEYOND[bound] ?? 0))] : null;
}
function compared(one, other) {
  const differences = one.map((part, i) => (typeof part === "number" ? part - other[i] : part.localeCompare(other[i] ?? "")));
  return differences.find(Boolean) ?? one.length - other.length;
}
function sort(table, head, place) {
  const body = table.tBodies[0];
  const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") ?? "none"];
  table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
  const rows = [...body.rows].sort((a, b) => a.dataset.row - b.dataset.row);
  if (next !== "none") {
    head.setAttribute("aria-sort", next);
    const numeric = head.classList.contains("number");
    const keys = new Map(rows.map((row) => [row, parts(shown(row.cells[place]), numeric)]));
    const sign = next === "ascending" ? 1 : -1;
    const order = (one, other) => (one && other ? sign * compared(one, other) : !one - !other);
    rows.sort((a, b) => order(keys.get(a), keys.get(b)));
  }
  body.append(...rows);
}
function filterable(table) {
  const label = document.createElement("label");
  const field = document.createElement("input");
  const count = document.createElement("span");
  field.type = "search";
  count.setAttribute("role", "status");
  label.append("Rows with ", field);
  const line = document.createElement("div");
  line.className = "filter";
  line.append(label, count);
  table.parentElement.before(line);
  field.setAttribute("aria-label", `Rows with these words: ${table.parentElement.getAttribute("aria-label")}`);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      left += !row.hidden;
    }
    count.textContent = words.length ? `${left} of ${table.tBodies[0].rows.length}` : "";
  });
}
document.querySelectorAll(".scroll > table").forEach((table) => {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 3) return;
  rows.forEach((row, place) => { row.dataset.row = place; });
  [...table.tHead.rows[0].cells].forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(table, head, place));
  });
  if (rows.length > 7) filterable(table);
});
