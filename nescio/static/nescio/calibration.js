// A slider beside each number: moving one moves the other. The number is what is sent,
// so that everything works without this file too.
"use strict";

(() => {
  const pair = (slider) => {
    const number = document.getElementById(slider.dataset.moves);
    slider.hidden = false;
    slider.addEventListener("input", () => { number.value = slider.value; });
    number.addEventListener("input", () => { slider.value = number.value; });
  };
  // What is saved is what is shown: after a change not before its effect is.
  const holdSaving = (thresholds, effect) => {
    let isChanged = false;
    const hold = () => {
      const save = effect.querySelector("form button");
      if (save && isChanged) save.disabled = true;
    };
    thresholds.addEventListener("input", () => { isChanged = true; hold(); });
    effect.parentElement.addEventListener("htmx:beforeRequest", () => { isChanged = false; });
    effect.addEventListener("htmx:afterSwap", hold);
  };
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-moves]").forEach(pair);
    const effect = document.getElementById("labelled");
    if (effect) holdSaving(document.getElementById("thresholds"), effect);
  });
})();
