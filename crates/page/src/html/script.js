(() => {
  "use strict";
  const tip = document.getElementById("tip");
  const marked = (event) => event.target.closest ? event.target.closest("[data-tip]") : null;
  const hide = () => { tip.hidden = true; };
  const show = (element) => {
    tip.textContent = element.dataset.tip;
    tip.hidden = false;
    const at = element.getBoundingClientRect();
    const middle = at.left + at.width / 2 - tip.offsetWidth / 2;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = at.top - tip.offsetHeight - 8;
    tip.style.left = `${window.scrollX + Math.max(8, Math.min(middle, room))}px`;
    tip.style.top = `${window.scrollY + (above > 0 ? above : at.bottom + 8)}px`;
  };
  for (const kind of ["pointerover", "focusin", "click"]) {
    document.addEventListener(kind, (event) => {
      const element = marked(event);
      if (element) show(element); else if (kind !== "focusin") hide();
    });
  }
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const from = marked(event);
    const chart = step && from ? from.closest("[data-chart]") : null;
    if (!chart) return;
    const all = [...chart.querySelectorAll("[data-tip]")];
    const to = all[all.indexOf(from) + step];
    if (!to) return;
    event.preventDefault();
    from.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });
  // A title inside a drawing would show a second tooltip over ours.
  for (const title of document.querySelectorAll("svg.chart > title")) {
    title.parentElement.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
