// Draws every figure of the page from the JSON beside it, in the colours of the reader's theme.
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 560px)");
  const config = { displayModeBar: false, displaylogo: false, responsive: true, showEditInChartStudio: false };

  function seen(trace) {  // black lines would vanish on a dark page
    const shown = (colour) => (dark.matches && colour === "#000000" ? "#f0f0f0" : colour);
    const part = (name) => (trace[name] && trace[name].color ? { [name]: { ...trace[name], color: shown(trace[name].color) } } : {});
    return { ...trace, ...part("line"), ...part("marker") };
  }

  function axis(described, ink, faint) {
    const { title, ...rest } = described;
    return {
      title: { text: title, standoff: 8 }, automargin: true, zeroline: false, showline: true, ticks: "outside",
      color: ink, linecolor: ink, gridcolor: faint, ...rest,
    };
  }

  function draw(script) {
    const spec = JSON.parse(script.textContent);
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), faint = style.getPropertyValue("--line").trim();
    const layout = {
      height: 380 + 18 * Math.ceil(spec.traces.length / 4),
      margin: { l: 56, r: 12, t: 12, b: 44 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: ink },
      legend: { orientation: "h", y: -0.2, yanchor: "top" },  // below, where it grows without covering a curve
      hovermode: "closest",
      dragmode: narrow.matches ? false : "zoom",  // a finger scrolls the page
      xaxis: axis(spec.x, ink, faint), yaxis: axis(spec.y, ink, faint),
    };
    Plotly.react(document.getElementById(script.dataset.figure), spec.traces.map(seen), layout, config);
  }

  const drawAll = () => document.querySelectorAll("script[data-figure]").forEach(draw);
  drawAll();
  for (const media of [dark, narrow]) media.addEventListener("change", drawAll);
})();
