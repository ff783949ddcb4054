const dark = window.matchMedia("(prefers-color-scheme: dark)");
function draw() {
  const colours = dark.matches ? DARK : LIGHT;
  CHARTS.forEach((spec, index) => {
    const place = document.getElementById("chart-" + (index + 1));
    const params = spec.params.map((param) => ({ ...param, value: colours[param.name] }));
    const target = document.createElement("div");
    window.vegaEmbed(target, { ...spec, params }, { renderer: "svg", actions: false }).then(() => {
      place.replaceChildren(target);
      place.classList.add("drawn");
    });
  });
}
dark.addEventListener("change", draw);
draw();
