
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
