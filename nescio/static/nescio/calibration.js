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
  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-moves]").forEach(pair);
  });
})();
